"""A channel, and the only way to change it.

A change is a function from states to states. It is staged (packages, then states, all under names
derived from their bytes), and published by swapping the head. The pages at fixed addresses follow,
each swapped for that of the previous state. Objects are on the disk before a head or a page names
them, so this order survives power cuts. A writer that finds an unexpected page was overtaken, or
follows a writer that died: then all pages of the part are compared with the expected ones, after
pages of parts that the other writer wanted to write first. So a page never goes back, and only
names existing objects.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from random import SystemRandom

import msgspec

from torchyard.errors import ElsewhereError, SelectionError
from torchyard.index.page import Media, Page
from torchyard.publish.channel.draft import (
    ROOTS,
    Amend,
    ChangeReason,
    Draft,
    Edit,
    Write,
    draft_change,
    needs,
)
from torchyard.publish.channel.head import HEAD, Head, head_copy_key, state_key
from torchyard.publish.channel.layout import headers, pages, parse_part, views_of
from torchyard.publish.channel.reader import ChannelReader
from torchyard.publish.channel.root_pages import all_roots
from torchyard.store.objects import Identity, Objects

PATIENCE = 300.0
"""Seconds of lost swaps before giving up."""


class Channel(ChannelReader):
    """A channel that can be changed."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self.objects = objects
        self._seen: tuple[Head, str | None] | None = None

    @classmethod
    def at(cls, url: str, *, make: bool = False) -> "Channel":
        """Open a channel; a missing one is an error, unless `make` is set."""
        if not make and not cls.is_at(url):
            msg = f"there is no channel at `{url}`"
            raise SelectionError(msg, hint="`torchyard publish` makes one")
        return cls(Objects(url, make=make))

    @staticmethod
    def is_at(url: str) -> bool:
        try:
            return Objects(url, make=False).head(HEAD) is not None
        except SelectionError:
            return False

    def head(self) -> Head:
        """Return the current head; the next commit starts from it, and saves a request."""
        self._seen = self._read_head()
        return self._seen[0]

    def _read_head(self) -> tuple[Head, str | None]:
        found = self.objects.read_tagged(HEAD)
        return (Head(), None) if found is None else (self._decoded(found[0]), found[1])

    def begin_with(self, head: Head, tag: str | None) -> None:
        """Let the next commit start from this head, and replace the damaged one with this tag."""
        self._seen = head, tag

    def _keep_copy(self, head: Head) -> None:
        """Write a copy of the head for `repair_channel`; buckets can keep versions themselves."""
        if self.objects.folder is not None:
            self.objects.write(head_copy_key(head.generation), msgspec.json.encode(head))

    def commit(
        self, edits: Mapping[str, Edit], reason: ChangeReason, amend: Amend = lambda head: head
    ) -> Head:
        """Change parts at once, in the order in which readers may see it.

        If nothing changes, rewrite wrong pages: a publisher may have died before it wrote them.
        """
        began = time.monotonic()
        draft: Draft | None = None
        while True:
            head, tag = self._seen or self._read_head()
            self._seen = None
            if draft and draft.head.log[-1] in head.log:
                break  # our swap worked, but its answer was lost, and another publisher followed
            draft = draft_change(head, edits, reason, amend, partial(self.state, head))
            if draft is None:
                self.mend([*edits, ROOTS])
                return head
            self._stage(draft)
            self.objects.sync()
            data = msgspec.json.encode(draft.head)
            if self.objects.swap(HEAD, data, tag, headers(Media.JSON, "page")):
                break
            self._wait(began)
        self._keep_copy(draft.head)
        self.objects.sync()
        self._write(draft.writes)
        return draft.head

    def _stage(self, draft: Draft) -> None:
        for page in draft.fixed:
            same = Identity(len(page.data), sha256(page.data).hexdigest())
            self.objects.ensure(page.path, page.data, same, headers(page.media, "bytes"))
        for digest, data in draft.states.items():
            same = Identity(len(data), digest)
            self.objects.ensure(state_key(digest), data, same, headers(Media.ZSTD, "bytes"))

    def _write(self, writes: Iterable[Write]) -> None:
        """Write pages; a part's last page, which stands for all, only when the others are synced.

        Pages of other parts, which may need them, follow.
        """
        for part, found in groupby(writes, key=attrgetter("part")):
            *others, last = found
            if all(self._swap(page, was) for _, page, was in others):
                self.objects.sync()
                if self._swap(last.page, last.was):
                    self.objects.sync()
                    continue
            self.mend([part])

    def _swap(self, page: Page, was: str | None) -> bool:
        return self.objects.swap(page.path, page.data, was, headers(page.media, "page"))

    def mend(self, parts: Iterable[str]) -> list[str]:
        """Rewrite the pages that differ from the expected ones, and return their paths.

        A page's tag is read before the head that its new text is made from, so a page written
        meanwhile from a newer head is never overwritten.
        """
        mended: dict[str, list[str]] = {}
        for part in parts:
            self._mend(part, mended)
        return [path for paths in mended.values() for path in paths]

    def _mend(self, part: str, mended: dict[str, list[str]]) -> None:
        if part not in mended:
            mended[part] = []
            began = time.monotonic()
            while not self._mend_once(part, mended):
                self._wait(began)
            self.objects.sync()

    def _mend_once(self, part: str, mended: dict[str, list[str]]) -> bool:
        before = self.head()
        there = {path: self.objects.tag(path) for path in self._tags(before, part)}
        head = self.head()
        tags = self._tags(head, part)
        stale = {path for path, tag in tags.items() if there.get(path) != tag}
        if not stale:
            return True
        found = {path: self.objects.read(path) if there.get(path) else None for path in stale}
        for needed in needs(head, part, found):
            self._mend(needed, mended)
        done = True
        wrong = [page for page in self._pages(head, part) if page.path in stale]
        for page in wrong:
            if page is wrong[-1]:
                self.objects.sync()
            if page.path not in there:
                done = False  # it is new, and so is its tag
            elif found[page.path] != page.data:
                if self._swap(page, there[page.path]):
                    mended[part].append(page.path)
                else:
                    done = False
        return done

    def _tags(self, head: Head, part: str) -> Mapping[str, str]:
        return self.state(head, part).tags if part else head.tags

    def _pages(self, head: Head, part: str) -> Iterator[Page]:
        if not part:
            return all_roots(head, partial(self.state, head))
        name = parse_part(part)
        state = self.state(head, part)
        return pages(name, state, views_of(name, state, head.variants))

    def _wait(self, began: float) -> None:
        """Back off for a random time that grows with the time already waited."""
        waited = time.monotonic() - began
        if waited > PATIENCE:
            msg = f"other processes change the channel `{self.url}` all the time"
            raise ElsewhereError(msg, hint="try again later", reason="busy")
        time.sleep(SystemRandom().uniform(0.005, min(0.5, 0.02 + waited)))
