"""A channel never breaks: publishers are killed at any moment, and cut off by their network.

A reader follows every link of every page, whatever has just happened, and compares hashes. It sees
what was there before or what is there afterwards, and never less than is in both.
"""

from collections import Counter
from contextlib import nullcontext
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec
import pytest
from tests.integration import test_crash as crash
from tests.integration.test_crash import Stock, Zygote
from tests.support.channel_deeds import DEEDS
from tests.support.channel_reader import (
    Reader,
    Shown,
    assert_between,
    assert_right,
    only_more,
    read_all,
    watched,
)
from tests.support.crash_driver import Deed, Kill, Moment, channel_deed
from tests.support.faults import Fault, FaultyProxy, Plan, Request
from tests.support.services import Place

from torchyard.publish.channel.channel import Channel
from torchyard.store import bucket

pytestmark = pytest.mark.integration

stock, zygote = crash.stock, crash.zygote

MOMENTS: tuple[Moment, ...] = ("before", "after")

POINTS = {
    ("directory", "first"): 90,
    ("directory", "later"): 115,
    ("directory", "large"): 20,
    ("directory", "yank"): 55,
    ("directory", "patch"): 20,
    ("directory", "prune"): 300,
    ("directory", "rollback"): 100,
    ("directory", "promote"): 200,
    ("bucket", "first"): 90,
    ("bucket", "later"): 115,
    ("bucket", "large"): 20,
    ("bucket", "yank"): 55,
    ("bucket", "patch"): 20,
    ("bucket", "prune"): 500,
    ("bucket", "rollback"): 100,
    ("bucket", "promote"): 200,
}
"""How many moments there are at least; if there are fewer, something is no longer counted."""

IN_CI = {
    "directory": ("first",),
    "bucket": ("rollback",),
}
"""CI makes some changes, each in one kind of channel; every night, each is made in both."""

BEFORE = {
    "first": (),
    "later": ("first",),
    "large": ("first",),
    "yank": ("first", "later"),
    "patch": ("first", "later"),
    "prune": ("first", "later"),
    "rollback": ("first", "later"),
    "promote": (),
}
"""What has been done to a channel before."""


class Tally(NamedTuple):
    """How often somebody was killed, and how often something was read."""

    kills: int
    reads: int


class Killing(NamedTuple):
    """Who is killed, and where."""

    stock: Stock
    zygote: Zygote
    folder: Path

    def at_moments(self, point: tuple[str, str], every: int) -> Tally:
        """Kill a deed at its moments, or every so many, each time in a channel of its own."""
        what = point[1]
        model, source = self.folder / "model", self.folder / "source"
        model.mkdir(parents=True)
        for name in ("first", "later"):
            DEEDS[name](str(source), "")
        for name in BEFORE[what]:
            DEEDS[name](str(model), "")
        before = Reader(Channel.at(str(model), make=True).objects.read)
        read_all(before, Channel.at(str(model), make=True).head())
        other = str(source) if what == "promote" else ""
        deed = channel_deed(what, self.folder / "work", self.stock(model), other)
        counted = self.zygote.succeed(deed)
        after = Reader(Channel.at(deed.store).objects.read)
        assert_right(Channel.at(deed.store), after)
        kills = [
            Kill(moment, number)
            for moment in MOMENTS
            for number in range(1, counted.moments[moment] + 1)
        ]
        assert len(kills) >= POINTS[point]
        every = min(every, len(kills))
        chosen = kills[every // 2 :: every]
        reads = 0
        for kill in chosen:
            deed = msgspec.structs.replace(deed, store=self.stock(model))
            with crash.told(kill):
                reads += self.at(kill, deed, before.shown, after.shown)
        print(f"{point}: {len(chosen)} of {len(kills)} moments, {reads} reads")
        return Tally(len(chosen), reads)

    def at(self, kill: Kill, deed: Deed, before: Shown, after: Shown) -> int:
        """Kill a deed, and do it again, to the end; readers find what they should all the while.

        Where things are hidden and deleted at once, a page that was just read names the deleted:
        nobody reads meanwhile.
        """
        channel = Channel.at(deed.store, make=True)
        reader = Reader(channel.objects.read)
        check = partial(assert_between, before=before, after=after)
        busy = deed.file != "prune"
        with watched(deed.store, check) if busy else nullcontext(reader) as watcher:
            read_all(reader, channel.head())
            assert reader.shown == before
            self.zygote.die(deed, kill)
            read_all(reader, channel.head())
            check(reader.shown)
            self.zygote.succeed(msgspec.structs.replace(deed, folder=f"{deed.folder}-again"))
            assert_right(channel, reader)
            assert reader.shown == after
        return reader.reads + (watcher.reads if busy else 0)


@pytest.mark.parametrize(
    ("stock", "point"),
    [
        pytest.param(
            point[0],
            point,
            id="-".join(point),
            marks=() if point[1] in IN_CI[point[0]] else pytest.mark.slow,
        )
        for point in POINTS
    ],
    indirect=["stock"],
)
def test_a_change_that_is_killed(
    stock: Stock, zygote: Zygote, tmp_path: Path, point: tuple[str, str]
) -> None:
    every = 32 if point[0] == "directory" else 90
    tally = Killing(stock, zygote, tmp_path).at_moments(point, every)
    assert tally.kills >= 1
    assert tally.reads >= 50 * tally.kills


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stock", "where"), [(where, where) for where in ("directory", "bucket")], indirect=["stock"]
)
def test_all_changes_are_killed(stock: Stock, zygote: Zygote, tmp_path: Path, where: str) -> None:
    """In a directory at every moment there is, in a bucket at one of eight."""
    every, least = (1, 500) if where == "directory" else (8, 120)
    kills = reads = 0
    for what in BEFORE:
        tally = Killing(stock, zygote, tmp_path / what).at_moments((where, what), every)
        kills, reads = kills + tally.kills, reads + tally.reads
    print(f"{where}: {kills} kills, {reads} reads")
    assert kills >= least
    assert reads >= 10_000


READS = (
    Fault.SLOW_DOWN,
    Fault.INTERNAL_ERROR,
    Fault.LOSE_REQUEST,
    Fault.LOSE_ANSWER,
    Fault.CUT_ANSWER,
)
WRITES = (*READS, Fault.CONFLICT, Fault.TEAR_REQUEST)


def often(random: Random, counts: Counter[Fault]) -> Plan:
    """Let one of four requests fail, in every way by turns, and some never be answered."""
    reads, writes = (cycle(random.sample(faults, len(faults))) for faults in (READS, WRITES))

    def plan(request: Request) -> Fault:
        if request.number % 60 == 0:
            fault = Fault.SILENCE
        elif random.random() < 0.75:
            return Fault.NONE
        else:
            fault = next(writes if request.method == "PUT" else reads)
        counts[fault] += 1
        return fault

    return plan


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_network_that_fails(
    s3_place: Place, s3_proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Deeds come to their end through it, and readers who have a better one see no fault."""
    monkeypatch.setattr(bucket, "SILENCE", 2.0)
    for name, value in s3_place.environment.items():
        monkeypatch.setenv(name, value)
    near = Channel.at(s3_place.url, make=True)
    counts: Counter[Fault] = Counter()
    s3_proxy.plan = often(Random(seed), counts)  # noqa: S311
    with watched(s3_place.url, only_more()) as reader:
        monkeypatch.setenv("AWS_ENDPOINT_URL", s3_proxy.endpoint)
        for what in ("first", "later", "large"):
            DEEDS[what](s3_place.url, "")
    parts = [request for request in s3_proxy.requests if "partNumber=" in request.path]
    print(f"{len(s3_proxy.requests)} requests, {counts}, {reader.reads} reads")
    assert counts.keys() == {*WRITES, Fault.SILENCE}
    assert len(parts) >= 2
    assert reader.reads > 100
    for what in ("yank", "prune") if seed else ():
        DEEDS[what](s3_place.url, "")
    assert_right(near, reader)
