"""What holds for every channel, whatever is done to it, and whoever dies or comes between."""

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import product

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.support.channel_reader import Reader, read_all, told
from tests.support.channels import LATER, Death, Made, Mortal, die, put, wheel, without
from tests.support.examples import examples

from torchyard.errors import ElsewhereError, PublishError, SelectionError
from torchyard.index.entry import SHARED, State
from torchyard.publish import upload
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ROOTS, ChangeReason, Edit
from torchyard.publish.ops.prune import prune
from torchyard.publish.ops.retention import Keep
from torchyard.publish.ops.rollback import rollback

NOW = datetime(2099, 1, 1, tzinfo=UTC)
"""Long after whatever is written here: all that is hidden may be deleted, and nobody is busy."""

PROJECTS = ("helper", "torch", "vision")


def _needs(project: str, version: str) -> list[str]:
    """Return what a wheel requires: vision is compiled against the torch of its version."""
    return [f"torch=={version}.*"] if project == "vision" else []


WHEELS = {
    (project, version, variant): wheel(project, version, variant, _needs(project, version))
    for project, version, variant in product(
        PROJECTS, ("1.0", "1.1", "2.0"), (SHARED, "cpu", "cu130")
    )
}

wheels = st.lists(st.sampled_from(sorted(WHEELS)), min_size=1, max_size=4, unique=True)
moments = st.integers(1, 40)
Deed = Callable[[Channel], object]


def yanking(file: str, reason: str) -> Edit:
    def edit(state: State) -> State:
        entries = (
            msgspec.structs.replace(entry, yanked=reason) if entry.file == file else entry
            for entry in state.entries
        )
        return msgspec.structs.replace(state, entries=tuple(entries))

    return edit


class Life(RuleBasedStateMachine):
    """A channel, what must be in it, and a reader who remembers what it saw."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.mkdtemp()
        self.channel = Channel.at(self.folder, make=True)
        self.reader = Reader(self.channel.objects.read)
        self.generation = 0
        self.day = 0
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(upload, "FILES", 1)  # one after the other, so that each run is the same
        self.published: set[tuple[str, str]] = set()
        self.known: dict[str, set[str]] = defaultdict(set)

    def teardown(self) -> None:
        self.patch.undo()
        shutil.rmtree(self.folder)

    @rule(chosen=wheels)
    def publish(self, chosen: list[tuple[str, str, str]]) -> None:
        self._publish(self.channel, chosen)

    @rule(chosen=wheels, at=moments, after=st.booleans(), again=st.booleans())
    def die(self, chosen: list[tuple[str, str, str]], at: int, *, after: bool, again: bool) -> None:
        with suppress(Death):
            objects = Mortal(self.folder, at, after=after, then=die)
            self._publish(Channel(objects), chosen)
        if again:
            self._look()
            self._publish(self.channel, chosen)

    @rule(chosen=wheels, others=wheels, at=moments, dies=st.none() | moments)
    def be_overtaken(
        self,
        chosen: list[tuple[str, str, str]],
        others: list[tuple[str, str, str]],
        at: int,
        dies: int | None,
    ) -> None:
        """Somebody else publishes in the middle, and perhaps dies of it."""

        def come_between() -> None:
            with suppress(Death):
                self._publish(Channel(Mortal(self.folder, dies or 0)), others)
            self._look()

        self._publish(Channel(Mortal(self.folder, at, then=come_between)), chosen)

    @rule(which=st.sampled_from(sorted(WHEELS)), reason=st.sampled_from(["", "broken"]))
    def yank(self, which: tuple[str, str, str], reason: str) -> None:
        made = WHEELS[which]
        self.channel.commit({made.part: yanking(made.entry.file, reason)}, LATER)

    @rule(which=st.sampled_from(sorted(WHEELS)), at=moments)
    def hide(self, which: tuple[str, str, str], at: int) -> None:
        made = WHEELS[which]
        with suppress(Death):
            channel = Channel(Mortal(self.folder, at))
            channel.commit({made.part: without(made.entry.file)}, LATER)
        self.published.discard((made.part, made.entry.file))

    @rule(back=st.integers(1, 3))
    def roll_back(self, back: int) -> None:
        """Show again what was shown before, if it is still there."""
        with suppress(PublishError, SelectionError):
            rollback(self.channel, self.channel.head().generation - back, self._reason())
            self.published.clear()

    @rule(chosen=wheels, at=moments, dies=st.none() | moments)
    def be_pruned(self, chosen: list[tuple[str, str, str]], at: int, dies: int | None) -> None:
        """Somebody hides and deletes while others publish, and perhaps dies of it."""

        def come_between() -> None:
            self.published.clear()
            with suppress(Death):
                self._prune(Channel(Mortal(self.folder, dies or 0)))
            self._look()

        self._publish(Channel(Mortal(self.folder, at, then=come_between)), chosen)
        self.published.clear()  # what was published may be hidden

    @rule(chosen=wheels, at=moments)
    def publish_what_is_pruned(self, chosen: list[tuple[str, str, str]], at: int) -> None:
        """Somebody publishes while others hide and delete."""

        def come_between() -> None:
            self.published.clear()
            self._publish(self.channel, chosen)
            self._look()

        self._prune(Channel(Mortal(self.folder, at, then=come_between)))
        self.published.clear()

    def _prune(self, channel: Channel) -> None:
        prune(channel, Keep(versions=1, grace=timedelta(0)), self._reason())

    def _reason(self) -> ChangeReason:
        """Every change comes a day after the last one."""
        self.day += 1
        return ChangeReason("a test", f"{NOW + timedelta(days=self.day):%Y-%m-%dT%H:%M:%SZ}")

    @rule()
    def mend(self) -> None:
        head = self.channel.head()
        self.channel.mend([*head.parts, ROOTS])
        assert self.channel.head() == head
        assert read_all(self.reader, head) == told(self.channel)
        for path, tag in self._tags().items():
            assert self.channel.objects.tag(path) == tag
        assert self.channel.mend([*head.parts, ROOTS]) == []

    @invariant()
    def everything_is_right(self) -> None:
        if hasattr(self, "folder"):
            self._look()

    def _publish(self, channel: Channel, chosen: list[tuple[str, str, str]]) -> None:
        made: list[Made] = [WHEELS[which] for which in chosen]
        with suppress(ElsewhereError):  # one of them is just being deleted
            put(channel, *made)
            self.published.update((one.part, one.entry.file) for one in made)

    def _look(self) -> None:
        """Every page is one that some state had, and names only what is there."""
        head = self.channel.head()
        assert head.generation >= self.generation
        self.generation = head.generation
        files = {
            (part, entry.file)
            for part in head.parts
            for entry in self.channel.state(head, part).entries
        }
        assert files >= self.published
        self.published = files  # also what those published who died afterwards
        for digest in {new for change in head.log for _, new in change.parts.values()}:
            for path, tag in self.channel.state_at(digest).tags.items():
                self.known[path].add(tag)
        read_all(self.reader, head)
        for path, tags in self.known.items():
            found = self.channel.objects.tag(path)
            assert found is None or found in tags

    def _tags(self) -> dict[str, str]:
        """What the pages of the channel should be."""
        head = self.channel.head()
        states = (self.channel.state(head, part) for part in head.parts)
        return dict(head.tags) | {path: tag for state in states for path, tag in state.tags.items()}


Life.TestCase.settings = settings(max_examples=examples(15), stateful_step_count=10, deadline=None)
TestLife = Life.TestCase
