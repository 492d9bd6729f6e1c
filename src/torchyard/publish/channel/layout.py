"""The pages of each kind of part, in the order of writing.

The last page of a part changes with all others: a writer that finds it unchanged knows that its
predecessor has written all pages.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from torchyard.index.entry import SHARED, WHOLE, Entry, State
from torchyard.index.landing import LANDING
from torchyard.index.page import Page
from torchyard.index.section import ChannelSection
from torchyard.index.sections import SECTIONS, section_of
from torchyard.index.views import FileKind, View, kinds_of
from torchyard.publish.channel.head import HEAD

TAKEN = frozenset({*SECTIONS, "packages", "states", "heads", "pins", HEAD, LANDING})
"""All other names on the first level of a channel are variants."""


class PartName(NamedTuple):
    """`simple/torch`, `conda/linux-64` or `libtorch/torch`."""

    section: str
    name: str

    def __str__(self) -> str:
        return f"{self.section}/{self.name}"

    @property
    def rules(self) -> ChannelSection:
        """The section of the part."""
        return SECTIONS[self.section]


def parse_part(text: str) -> PartName:
    return PartName(section_of(text).NAME, text.partition("/")[2])


def key_of(part: PartName, entry: Entry) -> str:
    """Return the key of a file's bytes."""
    return part.rules.key(part.name, entry)


def companions(parts: Collection[str], known: Collection[str]) -> list[str]:
    """Return parts that must be created with others of their section."""
    sections = {parse_part(part).section for part in parts}
    wanted = (first for section in sorted(sections) if (first := first_part(section)))
    return [first for first in wanted if first not in (*parts, *known)]


def first_part(section: str) -> str:
    """Return the part of a section to publish before all others, or ""."""
    name = SECTIONS[section].FIRST_PART
    return str(PartName(section, name)) if name else ""


def views_of(part: PartName, state: State, variants: Collection[str]) -> list[str]:
    """Return all views with pages of a part; `variants` are the channel's."""
    if not part.rules.HAS_VARIANTS:
        return [WHOLE]
    kinds = kinds_of(state.entries)
    own = {variant for variant, _ in kinds} | state.serials.keys()
    if part.rules.INDEX_PER_VARIANT or SHARED in own:
        own |= shown_in(kinds, variants)
    return [*sorted(own - {SHARED, WHOLE}), WHOLE]


def shown_in(kinds: Collection[FileKind], views: Iterable[str]) -> set[str]:
    """Return the views that show any of these kinds."""
    return {view for view in views if any(map(View.parse(view).shows, kinds))}


def changed_views(
    part: PartName, old: State, new: State, touched: Iterable[Entry], variants: Collection[str]
) -> list[str]:
    """Return the views whose pages change; `touched` is what changed."""
    views = views_of(part, new, variants)
    if (old.status, old.status_reason) != (new.status, new.status_reason):
        return views
    kinds = kinds_of(touched)
    wanted = shown_in(kinds, views).union([WHOLE] if kinds else [])
    fresh = (view for view in views if view not in new.serials)  # shared files appear there, too
    wanted.update(fresh)
    return [view for view in views if view in wanted]


def settle(part: PartName, new: State, touched: Iterable[Entry]) -> tuple[State, list[Page]]:
    """Return a state's further fields, and the immutable objects that it names."""
    return part.rules.settle(part.name, new, touched)


def pages(part: PartName, state: State, views: Collection[str]) -> Iterator[Page]:
    """Return the pages of a part in these views."""
    return part.rules.pages(part.name, state, views)


Lasting = Literal["page", "name", "bytes"]
"""How long an address keeps its content: until the next change; until its file is pruned, after
which conda's names may be reused; forever, as it contains the digest of its bytes."""

_CACHE: Mapping[Lasting, str] = {
    "page": "public, max-age=60",
    "name": "public, max-age=86400",
    "bytes": "public, max-age=31536000, immutable",
}


def headers(media: str, lasting: Lasting) -> dict[str, str]:
    """Return the HTTP headers that a server should send with an object."""
    return {"Content-Type": media, "Cache-Control": _CACHE[lasting]}
