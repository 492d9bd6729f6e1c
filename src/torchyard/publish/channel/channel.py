"""A channel, and the one way in which it changes.

A change is a function from states to states. It is staged (packages, then states, all under names
that belong to their bytes), and then the head is swapped: that is the moment it is published. The
pages at their fixed addresses follow, each swapped for the one that the state before it had. What a
head or a page names is on the disk before it is named, so this order survives a power cut, too. A
writer who finds another page there was overtaken, or follows one who died half-way: then all pages
of the part are compared with what they should be, after those of parts that the other one wanted
to write before. So a page never goes back, and names only what is there.
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
"""Give up after this many seconds of lost swaps."""


class Channel(ChannelReader):
    """A channel that can be changed."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self.objects = objects
        self._seen: tuple[Head, str | None] | None = None

    @classmethod
    def at(cls, url: str, *, make: bool = False) -> "Channel":
        """Open a channel; one that is not there is an error, unless it may be made."""
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
        """The head as it is now; the next commit begins with it, and saves a request."""
        self._seen = self._read_head()
        return self._seen[0]

    def _read_head(self) -> tuple[Head, str | None]:
        found = self.objects.read_tagged(HEAD)
        return (Head(), None) if found is None else (self._decoded(found[0]), found[1])

    def begin_with(self, head: Head, tag: str | None) -> None:
        """Let the next commit change this head, in place of one with this tag that is damaged."""
        self._seen = head, tag

    def _keep_copy(self, head: Head) -> None:
        """Write a copy of the head, for `repair_channel`; buckets can keep versions themselves."""
        if self.objects.folder is not None:
            self.objects.write(head_copy_key(head.generation), msgspec.json.encode(head))

    def commit(
        self, edits: Mapping[str, Edit], reason: ChangeReason, amend: Amend = lambda head: head
    ) -> Head:
        """Change some parts at once, in the order in which readers may see it.

        If nothing changes, a publisher may have died before it wrote all pages: they are mended.
        """
        began = time.monotonic()
        draft: Draft | None = None
        while True:
            head, tag = self._seen or self._read_head()
            self._seen = None
            if draft and draft.head.log[-1] in head.log:
                break  # our swap worked: its answer got lost, and another publisher was quick
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
        """Write pages; each part's last one when the others are on the disk, for it stands for all.

        Only then follow the pages of other parts, which may need them.
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
        """Rewrite the pages that differ from what they should be, and return their paths.

        The tag of a page is read before the head that the new page is made of, so a page that is
        written meanwhile from a newer head is never overwritten.
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
                done = False  # it is new since, and so is its tag
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
            msg = f"others change the channel `{self.url}` all the time"
            raise ElsewhereError(msg, hint="try again later", reason="busy")
        time.sleep(SystemRandom().uniform(0.005, min(0.5, 0.02 + waited)))
