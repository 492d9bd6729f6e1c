"""The head of a channel: a small object with the current state of each part.

channel.json               the head; replacing it by compare-and-swap is the act of publishing
heads/0.json, heads/1.json copies of the last two heads, if the channel is a directory
states/ab/ab12….json.zst   states of parts, by the sha256 of their bytes
packages/cd/cd34…/FILE     wheels and libtorch zips, by the sha256 of their bytes
simple/, cu130/, …         simple indexes: of everything, and of each variant
torch-2.13+cu130/, …       the same for users of this torch; see `index.views`
conda/linux-64/            a conda channel
libtorch/torch/cu130/      listings of libtorch zips
"""

from datetime import datetime
from typing import Literal

from torchyard.index.availability import PackageOffer
from torchyard.index.entry import WHOLE
from torchyard.index.section import Elsewhere
from torchyard.index.sections import is_in_variants
from torchyard.model.values import Value

HEAD = "channel.json"
HEAD_COPIES = ("heads/0.json", "heads/1.json")
HISTORY = 200
"""The most changes in the log; these can be rolled back."""


class ChannelPart(Value, kw_only=True):
    """A project of the simple index, a subdir of the conda channel, or a listing."""

    state: str
    """The digest of its state."""
    variants: tuple[str, ...] = ()
    shared: bool = False
    """Whether it has files for every variant."""
    torch_views: tuple[str, ...] = ()
    """Views of torch releases that exist because files are compiled against these."""
    offers: tuple[PackageOffer, ...] = ()


class Change(Value, kw_only=True):
    """A switch: reason, time, and states before and after; none for a missing part."""

    generation: int
    at: str
    why: str
    parts: dict[str, tuple[str, str]]
    """In the order in which their pages are written."""
    run: str = ""
    """Unique for each try, so that a writer recognises its own change."""


class Pin(Value, kw_only=True):
    """Versions that are never pruned."""

    projects: dict[str, tuple[str, ...]]
    """The versions of each project, without local parts: `torch` → `2.14.0`."""
    at: str
    why: str = ""


class Head(Value, kw_only=True):
    """Everything that is published, in a few thousand bytes."""

    version: Literal[1] = 1
    generation: int = 0
    name: str = ""
    """The name of the channel: `nightly`."""
    grouping: Literal["compute", "compute-blas"] = "compute"
    """The scheme for names of variants."""
    parts: dict[str, ChannelPart] = {}
    """`simple/torch`, `conda/linux-64`, `libtorch/torch`."""
    serials: dict[str, int] = {}
    """For each view, the generation that last changed its list of projects."""
    link_pages: dict[str, int] = {}
    """For each view of a torch, the generation that last changed its page for `--find-links`."""
    landing: int = 0
    """The generation that last changed the landing page."""
    tags: dict[str, str] = {}
    """Of the pages made from the head."""
    pins: dict[str, Pin] = {}
    external: tuple[str, ...] = ()
    """Globs over names declared as external."""
    upstream: tuple[str, ...] = ()
    """Addresses of indexes with these; empty for the installer's default."""
    log: tuple[Change, ...] = ()
    """The newest last."""

    @property
    def elsewhere(self) -> Elsewhere:
        """The indexes with external requirements of packages, if there are any.

        These are declared, or mirrored files need a torch that the channel lacks.
        """
        offers = (offer for part in self.parts.values() for offer in part.offers)
        needs_torch = not self.has_torch and any(offer.torch for offer in offers)
        return self.upstream if self.external or needs_torch else None

    @property
    def has_torch(self) -> bool:
        """Whether it has wheels of torch itself."""
        return any(name.partition("/")[2] == "torch" for name in self.parts if is_in_variants(name))

    @property
    def variants(self) -> tuple[str, ...]:
        """All variants with indexes, in order; they keep them, even without files."""
        parts = (p for name, p in self.parts.items() if is_in_variants(name))
        found = {variant for part in parts for variant in part.variants}
        return tuple(sorted(found.union(self.serials) - {WHOLE}))


def head_copy_key(generation: int) -> str:
    """Return the key of a head's copy: two alternate, so that one is always complete."""
    return HEAD_COPIES[generation % 2]


def state_key(digest: str) -> str:
    return f"states/{digest[:2]}/{digest}.json.zst"


def live_states(head: Head) -> set[str]:
    """Return the states that a head names."""
    logged = (digest for c in head.log for pair in c.parts.values() for digest in pair)
    return {*(part.state for part in head.parts.values()), *logged} - {""}


def changes_within(head: Head, born: datetime) -> list[Change]:
    """Return all changes from the first one after a moment, even if clocks later went backwards."""
    late = (datetime.fromisoformat(change.at) >= born for change in head.log)
    return list(head.log[next((i for i, is_late in enumerate(late) if is_late), len(head.log)) :])
