"""The pages that are made of a channel's head: lists of projects, and the landing page."""

from collections.abc import Iterator

import msgspec

from torchyard.index.entry import WHOLE
from torchyard.index.landing import LANDING, landing_page
from torchyard.index.page import Page
from torchyard.index.sections import SECTIONS, is_in_variants
from torchyard.publish.channel.head import Head
from torchyard.store.tags import content_tag


def all_roots(head: Head) -> Iterator[Page]:
    """All of these pages, as they should be."""
    for name, section in SECTIONS.items():
        listings = _listings(head) if section.INDEX_PER_VARIANT else {WHOLE: _names(head, name)}
        yield from section.root_pages(listings, head.serials)
    yield _landing(head)


def changed_roots(old: Head, new: Head) -> tuple[Head, list[Page]]:
    """The new head, which knows its pages, and those that say something else than before."""
    before = _listings(old)
    views = [view for view, names in _listings(new).items() if before.get(view) != names]
    serials = {**new.serials, **dict.fromkeys(views, new.generation)}
    new = msgspec.structs.replace(new, serials=serials)
    if new.tags.get(LANDING) != content_tag(_landing(new).data):
        new = msgspec.structs.replace(new, landing=new.generation)
    made = [page for page in all_roots(new) if new.tags.get(page.path) != content_tag(page.data)]
    tags = {**new.tags, **{page.path: content_tag(page.data) for page in made}}
    return msgspec.structs.replace(new, tags=tags), made


def _landing(head: Head) -> Page:
    offers = {name: part.offers for name, part in head.parts.items()}
    return landing_page(head.name, offers, head.landing, head.elsewhere)


def _names(head: Head, section: str) -> list[str]:
    parts = (name.partition("/") for name in head.parts)
    return [name for own, _, name in parts if own == section]


def _listings(head: Head) -> dict[str, list[str]]:
    """For each view, the projects that have files in it."""
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
