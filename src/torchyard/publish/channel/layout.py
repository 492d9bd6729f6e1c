"""Which pages each sort of part has, in the order in which they are to be written.

The last page of a part changes with all others: who finds it as its predecessor left it knows that
the predecessor has written all of them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from torchyard.errors import StoreError
from torchyard.index.conda.repodata import NOARCH, repodata_pages
from torchyard.index.conda.shards import changed_shards, shards_page
from torchyard.index.entry import SHARED, WHOLE, Entry, State, package_key
from torchyard.index.landing import LANDING
from torchyard.index.libtorch.listing import listing_pages
from torchyard.index.page import Page
from torchyard.index.simple.write import ProjectIndex
from torchyard.publish.channel.head import HEAD

Shelf = Literal["simple", "conda", "libtorch"]

TAKEN = frozenset({"simple", "conda", "libtorch", "packages", "states", "pins", HEAD, LANDING})
"""Everything else on the first level of a channel is a variant."""


class PartName(NamedTuple):
    """`simple/torch`, `conda/linux-64` or `libtorch/torch`."""

    shelf: Shelf
    name: str

    def __str__(self) -> str:
        return f"{self.shelf}/{self.name}"


def parse_part(text: str) -> PartName:
    shelf, _, name = text.partition("/")
    match shelf:
        case "simple" | "conda" | "libtorch":
            return PartName(shelf, name)
        case _:
            msg = f"the channel has a part `{text}`, which is of no known sort"
            raise StoreError(msg, hint="it was written by a newer torchyard: take that one")


def key_of(part: PartName, entry: Entry) -> str:
    """Where the bytes of a file are. Only names of conda packages may come to mean other bytes."""
    if part.shelf == "conda":
        return f"{part}/{entry.file}"
    return package_key(entry.sha256, entry.file)


def companions(parts: Collection[str], known: Collection[str]) -> list[str]:
    """Parts that must come to be with others: solvers ask each conda channel for `noarch`."""
    noarch = str(PartName("conda", NOARCH))
    wanted = any(parse_part(part).shelf == "conda" for part in parts)
    return [noarch] if wanted and noarch not in (*parts, *known) else []


def views_of(part: PartName, state: State, variants: Collection[str]) -> list[str]:
    """All views that a part has pages in; `variants` are those of the whole channel."""
    if part.shelf == "conda":
        return [WHOLE]
    own = {entry.variant for entry in state.entries} | state.serials.keys()
    if SHARED in own:
        own.update(variants)
    return [*sorted(own - {SHARED, WHOLE}), WHOLE]


def changed_views(
    part: PartName, old: State, new: State, touched: Iterable[Entry], variants: Collection[str]
) -> list[str]:
    """The views whose pages say something else than before; `touched` is what changed."""
    views = views_of(part, new, variants)
    if (old.status, old.status_reason) != (new.status, new.status_reason):
        return views
    own = {entry.variant for entry in touched}
    if SHARED in own:
        return views
    fresh = [view for view in views if view not in new.serials]  # shared files appear there, too
    wanted = own.union(fresh, [WHOLE] if own else [])
    return [view for view in views if view in wanted]


def in_view(state: State, view: str) -> list[Entry]:
    """The entries that a view shows: in the whole, the first of those with one name."""
    if view == WHOLE:
        return list({entry.file: entry for entry in reversed(state.entries)}.values())[::-1]
    return [entry for entry in state.entries if entry.variant in (view, SHARED)]


def settle(part: PartName, new: State, touched: Iterable[Entry]) -> tuple[State, list[Page]]:
    """What a state needs beside its entries, and the objects that never change it leads to."""
    if part.shelf != "conda":
        return new, []
    shards, fresh = changed_shards(part.name, new, touched)
    return msgspec.structs.replace(new, shards=shards), fresh


def pages(part: PartName, state: State, views: Collection[str]) -> Iterator[Page]:
    """The pages of a part in some views."""
    match part.shelf:
        case "simple":
            index = ProjectIndex(part.name, state)
            for view in views:
                yield from index.pages(view, in_view(state, view))
        case "conda":
            for _ in views:  # it has one
                yield from repodata_pages(part.name, state)
                yield shards_page(part.name, state)
        case "libtorch":
            for view in views:
                shown = state.entries if view == WHOLE else in_view(state, view)
                yield from listing_pages(part.name, state, view, shown)


Lasting = Literal["page", "name", "bytes"]
"""How long an address means the same: until the next change; until its file is pruned, after which
conda's names may be given to another one; for ever, as it holds the digest of its bytes."""

_CACHE: Mapping[Lasting, str] = {
    "page": "public, max-age=60",
    "name": "public, max-age=86400",
    "bytes": "public, max-age=31536000, immutable",
}


def headers(media: str, lasting: Lasting) -> dict[str, str]:
    """What a server should say of an object."""
    return {"Content-Type": media, "Cache-Control": _CACHE[lasting]}
