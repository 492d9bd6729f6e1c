"""Two at once: whatever one does at any moment of the other's work, all pages stay right."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.channel_reader import assert_right
from tests.support.channels import Death, Mortal, conda, put, wheel

from torchyard.errors import ElsewhereError
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.ops.prune import prune
from torchyard.publish.ops.retention import Keep
from torchyard.publish.ops.yank import yank
from torchyard.publish.select import parse_selection
from torchyard.store.objects import Objects

Deed = Callable[[Channel], object]

BAD = "it is broken"


def moment(days: float = 0) -> str:
    return f"{datetime.now(tz=UTC) + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"


def clean(channel: Channel) -> None:
    prune(channel, Keep(), ChangeReason("prune", moment()), orphans=True)


def take_back(channel: Channel, days: float = 0) -> None:
    yank(channel, parse_selection(["some"]), BAD, ChangeReason("yank", moment(days)))


def offer_again(channel: Channel) -> None:
    yank(channel, parse_selection(["some"]), None, ChangeReason("offer again", moment()))


def grow_old(channel: Channel) -> None:
    """Let all that is there have been written eight days ago."""
    folder = channel.objects.folder
    assert folder is not None
    then = datetime.now(tz=UTC).timestamp() - 8 * 86400
    for path in folder.rglob("*"):
        os.utime(path, (then, then))


def at_every_moment(folder: Path, prepare: Deed, first: Deed, second: Deed) -> Iterator[Channel]:
    """Channels to which the second deed was done within the first one, each a moment later."""
    happened = [True]
    while happened:
        channel = Channel.at(str(folder / str(len(list(folder.iterdir())))), make=True)
        prepare(channel)
        happened.clear()

        def meanwhile(channel: Channel = channel) -> None:
            happened.append(True)
            second(Channel.at(channel.url))

        moment = len(list(folder.iterdir()))
        first(Channel(Mortal(channel.url, moment, then=meanwhile)))
        yield channel


def test_a_shard_that_is_needed_again_is_no_orphan(tmp_path: Path) -> None:
    """What somebody offers again has the shard that it had before it was taken back."""

    def prepare(channel: Channel) -> None:
        put(channel, conda("some"), conda("other"), at=moment(-8))
        take_back(channel, -8)
        grow_old(channel)

    def again(channel: Channel) -> None:
        try:
            offer_again(channel)
        except ElsewhereError as error:
            assert "are being deleted" in str(error)  # noqa: PT017 - it may work, too

    tries = 0
    for channel in at_every_moment(tmp_path, prepare, clean, again):
        tries += 1
        assert_right(channel)
    assert tries > 20


def test_what_a_dead_writer_has_staged_is_not_taken_for_ones_own(tmp_path: Path) -> None:
    """Who does the same again makes other states: those of the dead may be deleted just now."""

    def prepare(channel: Channel) -> None:
        put(channel, wheel("some"), at=moment(-8))
        with pytest.raises(Death):
            take_back(Channel(Mortal(channel.url, 4)))
        assert len(list(channel.objects.list("states/"))) == 2
        assert channel.head().generation == 1
        grow_old(channel)

    tries = 0
    for channel in at_every_moment(tmp_path, prepare, clean, take_back):
        tries += 1
        assert_right(channel)
    assert tries > 5


def test_a_shard_that_hiding_brings_back_is_no_orphan(tmp_path: Path) -> None:
    """An old version that came late goes: the shard is the one from before it came."""
    channel = Channel.at(str(tmp_path), make=True)
    put(channel, conda("some", "2.0"), at=moment(-8))
    put(channel, conda("some", "1.0"), at=moment(-8))
    grow_old(channel)
    done = prune(channel, Keep(versions=1), ChangeReason("prune", moment()), orphans=True)
    assert [one.entry.version for one in done.hidden] == ["1.0"]
    assert_right(channel)


def test_what_was_staged_just_now_is_no_orphan(tmp_path: Path) -> None:
    """No grace period is so short that it ends before somebody is done."""

    def hasty(channel: Channel) -> None:
        keep = Keep(grace=timedelta())
        prune(channel, keep, ChangeReason("prune", moment(1 / 86400)), orphans=True)

    def prepare(channel: Channel) -> None:
        put(channel, wheel("some"))

    for channel in at_every_moment(tmp_path, prepare, take_back, hasty):
        assert_right(channel)


class Vanishing(Objects):
    """Objects that somebody deletes whenever they are looked at."""

    def stream(self, key: str) -> Iterator[bytes]:
        self.delete([key])
        return super().stream(key)


def test_a_conda_package_is_sent_again_if_another_one_is_deleted(tmp_path: Path) -> None:
    """Its name is taken while it is sent, and free when somebody looks what is there."""
    channel = Channel(Vanishing(str(tmp_path)))
    channel.objects.create("conda/linux-64/some-1.0-h1_0.conda", b"left by somebody who died")
    put(channel, conda("some"))
    assert_right(Channel.at(str(tmp_path)))


@pytest.mark.slow
def test_two_who_prune_at_once_both_succeed(tmp_path: Path) -> None:
    def prepare(channel: Channel) -> None:
        put(channel, wheel("some", "1.0"), wheel("some", "2.0"), conda("some"), at=moment(-30))
        prune(channel, Keep(versions=1), ChangeReason("prune", moment(-20)))
        take_back(channel, -19)
        grow_old(channel)

    tries = 0
    for channel in at_every_moment(tmp_path, prepare, clean, clean):
        tries += 1
        assert_right(channel)
        assert channel.state(channel.head(), "simple/some").hidden == ()
    assert tries > 20
