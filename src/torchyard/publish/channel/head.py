"""The head of a channel: one small object that says which state each part of it is in.

channel.json               the head; replacing it by compare-and-swap is the act of publishing
heads/0.json, heads/1.json copies of the last two heads, if the channel is a directory
states/ab/ab12….json.zst   states of parts, by the sha256 of their bytes
packages/cd/cd34…/FILE     wheels and libtorch zips, by the sha256 of their bytes
simple/, cu130/, …         simple indexes: of everything, and of each variant
torch-2.13+cu130/, …       the same for those who have this torch; see `index.views`
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
"""The number of changes in the log, which can be rolled back."""


class ChannelPart(Value, kw_only=True):
    """A project of the simple index, a subdir of the conda channel, or a listing."""

    state: str
    """The digest of its state."""
    variants: tuple[str, ...] = ()
    shared: bool = False
    """Whether it has files that are in every variant."""
    torch_views: tuple[str, ...] = ()
    """The views of a torch that exist because it has files which are compiled against that."""
    offers: tuple[PackageOffer, ...] = ()


class Change(Value, kw_only=True):
    """One switch: why, when, and the states before and after. No state: no such part."""

    generation: int
    at: str
    why: str
    parts: dict[str, tuple[str, str]]
    """In the order in which their pages are written."""
    run: str = ""
    """Unique for each try: so a writer knows its own change again."""


class Pin(Value, kw_only=True):
    """Versions that are kept when others are pruned."""

    projects: dict[str, tuple[str, ...]]
    """For each project its versions, without their local parts: `torch` → `2.14.0`."""
    at: str
    why: str = ""


class Head(Value, kw_only=True):
    """Everything that is published, in a few thousand bytes."""

    version: Literal[1] = 1
    generation: int = 0
    name: str = ""
    """What people call the channel: `nightly`."""
    grouping: Literal["compute", "compute-blas"] = "compute"
    """What a variant is called after."""
    parts: dict[str, ChannelPart] = {}
    """`simple/torch`, `conda/linux-64`, `libtorch/torch`."""
    serials: dict[str, int] = {}
    """For each view the generation that changed its list of projects last."""
    link_pages: dict[str, int] = {}
    """For each view of a torch the generation that changed its page for `--find-links` last."""
    landing: int = 0
    """The generation that changed the landing page last."""
    tags: dict[str, str] = {}
    """Of the pages that are made of the head itself."""
    pins: dict[str, Pin] = {}
    external: tuple[str, ...] = ()
    """Globs over names that were declared to come from elsewhere."""
    upstream: tuple[str, ...] = ()
    """Addresses of indexes that have these; none if it is the installer's own default."""
    log: tuple[Change, ...] = ()
    """The newest last."""

    @property
    def elsewhere(self) -> Elsewhere:
        """The indexes that have what packages require from elsewhere, if they require anything.

        It was declared; or files are mirrored that need a torch, which the channel does not have.
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
        """Every variant that has an index of its own, in order; it keeps it, even without files."""
        parts = (p for name, p in self.parts.items() if is_in_variants(name))
        found = {variant for part in parts for variant in part.variants}
        return tuple(sorted(found.union(self.serials) - {WHOLE}))


def head_copy_key(generation: int) -> str:
    """Return where a directory has a copy of a head: two take turns, so that one is complete."""
    return HEAD_COPIES[generation % 2]


def state_key(digest: str) -> str:
    return f"states/{digest[:2]}/{digest}.json.zst"


def live_states(head: Head) -> set[str]:
    """The states that a head leads to."""
    logged = (digest for c in head.log for pair in c.parts.values() for digest in pair)
    return {*(part.state for part in head.parts.values()), *logged} - {""}


def changes_within(head: Head, born: datetime) -> list[Change]:
    """All changes from the first on that was made after a moment, whatever clocks said later."""
    late = (datetime.fromisoformat(change.at) >= born for change in head.log)
    return list(head.log[next((i for i, is_late in enumerate(late) if is_late), len(head.log)) :])
