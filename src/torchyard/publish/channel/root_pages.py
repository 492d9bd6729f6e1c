"""The pages made from a channel's head: lists of projects or files, and the landing page."""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from torchyard.index.entry import WHOLE, State
from torchyard.index.landing import LANDING, landing_page
from torchyard.index.page import Page
from torchyard.index.sections import SECTIONS, is_in_variants
from torchyard.index.simple.write import links_page
from torchyard.index.views import home_of, kind_of
from torchyard.publish.channel.head import Head
from torchyard.store.tags import content_tag

ReadState = Callable[[str], State]
"""Returns the state of a part."""


def all_roots(head: Head, read: ReadState) -> Iterator[Page]:
    """Return all of these pages."""
    yield from _link_pages(head, head.link_pages, read)
    yield from _plain_roots(head)


def changed_roots(
    old: Head, new: Head, touched: Iterable[str], read: ReadState
) -> tuple[Head, list[Page]]:
    """Return the new head with its pages, and the changed pages.

    `touched` are the parts that changed, and `read` returns their new states.
    """
    before = _listings(old)
    views = [view for view, names in _listings(new).items() if before.get(view) != names]
    serials = {**new.serials, **dict.fromkeys(views, new.generation)}
    links = [
        view
        for part in touched
        for view in {*_torch_views(old, part), *_torch_views(new, part)}
        if read(part).serials.get(view) == new.generation
    ]
    link_pages = {**new.link_pages, **dict.fromkeys(links, new.generation)}
    new = msgspec.structs.replace(new, serials=serials, link_pages=link_pages)
    if new.tags.get(LANDING) != content_tag(_landing(new).data):
        new = msgspec.structs.replace(new, landing=new.generation)
    pages = [*_link_pages(new, dict.fromkeys(links), read), *_plain_roots(new)]
    made = [page for page in pages if new.tags.get(page.path) != content_tag(page.data)]
    tags = {**new.tags, **{page.path: content_tag(page.data) for page in made}}
    return msgspec.structs.replace(new, tags=tags), made


def _plain_roots(head: Head) -> Iterator[Page]:
    """Return the pages made from only the head."""
    for name, section in SECTIONS.items():
        listings = _listings(head) if section.INDEX_PER_VARIANT else {WHOLE: _names(head, name)}
        yield from section.root_pages(listings, head.serials)
    yield _landing(head)


def _link_pages(head: Head, views: Iterable[str], read: ReadState) -> Iterator[Page]:
    """Return the pages of files compiled against a torch, one page per variant."""
    for view in views:
        parts = sorted(part for part in head.parts if view in _torch_views(head, part))
        states = (state for part in parts if (state := read(part)).status != "quarantined")
        entries = [
            entry
            for state in states
            for entry in state.entries
            if str(home_of(kind_of(entry))) == view
        ]
        yield links_page(view, entries, head.link_pages[view])


def _torch_views(head: Head, part: str) -> tuple[str, ...]:
    return head.parts[part].torch_views if part in head.parts else ()


def _landing(head: Head) -> Page:
    offers = {name: part.offers for name, part in head.parts.items()}
    return landing_page(head.name, offers, head.landing, head.elsewhere)


def _names(head: Head, section: str) -> list[str]:
    parts = (name.partition("/") for name in head.parts)
    return [name for own, _, name in parts if own == section]


def _listings(head: Head) -> dict[str, list[str]]:
    """Return the projects with files in each view."""
    parts = {
        name.partition("/")[2]: part for name, part in head.parts.items() if is_in_variants(name)
    }
    return {
        view: sorted(
            name
            for name, part in parts.items()
            if part.shared or view in part.variants or (view == WHOLE and part.variants)
        )
        for view in (*head.variants, WHOLE)
    }
