"""What is done when the power is cut, on a store, a channel or a whole build; also a program."""

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from tests.support.channel_deeds import DEEDS as CHANNELS
from tests.support.channel_reader import Reader, assert_right, read_all
from tests.support.helpers import CORE, WORKS, make_project

from torchyard.config.load import load_config
from torchyard.model.identifier import parse
from torchyard.model.job_spec import JobSpec
from torchyard.plan.build import make_plan_with
from torchyard.plan.job_specs import make_job_spec
from torchyard.publish.channel.channel import Channel
from torchyard.run.conditions import Conditions
from torchyard.run.job import run_job
from torchyard.store.gc import remove_garbage
from torchyard.store.store import Store
from torchyard.store.transfer import copy
from torchyard.store.verify import verify
from torchyard.workspace.build import build_packages
from torchyard.workspace.build_request import BuildRequest

_SOURCE = "source:demo-1.0"


class PowerDeed(NamedTuple):
    """Something that is done below a directory, and what must be true of the files there."""

    before: Callable[[Path], object]
    do: Callable[[Path], object]
    is_sound: Callable[[Path], object]
    """Fails unless all that is named is whole; at any moment."""
    is_done: Callable[[Path], bool]
    """Fails if something is missing; returns whether it was done."""


def _spec(root: Path, job: str) -> JobSpec:
    name = parse(job)
    assert name.stage is not None
    plan = make_plan_with(load_config(str(root / "project/torchyard.toml")), name)
    return make_job_spec(plan, plan.find(name.stage, name.path))


def _run(root: Path, job: str = CORE) -> None:
    conditions = Conditions(work=root / "work", file=str(root / "project/torchyard.toml"), copies=1)
    run_job(_spec(root, job), _store(root), conditions, lambda _: None)


def _store(root: Path, name: str = "store") -> Store:
    return Store.at(str(root / name))


def _with_source(root: Path) -> None:
    make_project(root / "project", WORKS)
    _run(root, _SOURCE)


def _with_core(root: Path) -> None:
    _with_source(root)
    _run(root)


def _has_results(root: Path, count: int = 2, name: str = "store") -> bool:
    """Every result that a store lists can be used."""
    store = _store(root, name)
    verdict = verify(store)
    assert verdict.is_clean, verdict
    return verdict.results == count


def _collect(root: Path) -> None:
    remove_garbage(_store(root), (), timedelta(minutes=-1))


def _copy(root: Path) -> None:
    source = _store(root)
    copy(source, _store(root, "copy"), source.results())


def _channel(root: Path) -> Channel:
    return Channel.at(str(root / "channel"), make=True)


def _reads(root: Path) -> None:
    """All pages lead to what they promise, and so does the head."""
    channel = _channel(root)
    head = channel.head()
    read_all(Reader(channel.objects.read), head)
    for part in head.parts:
        channel.state(head, part)


def _is_published(generation: int) -> Callable[[Path], bool]:
    def is_done(root: Path) -> bool:
        assert_right(_channel(root))
        return _channel(root).head().generation >= generation

    return is_done


def _in_channel(*names: str) -> Callable[[Path], None]:
    def do(root: Path) -> None:
        for name in names:
            CHANNELS[name](str(root / "channel"), str(root / "source"))

    return do


def _with_source_channel(root: Path) -> None:
    CHANNELS["first"](str(root / "source"), "")


def _build(root: Path) -> None:
    build_packages(BuildRequest(str(root / "project/torchyard.toml"), select=["cp312"]))


def _is_built(root: Path) -> bool:
    return _has_results(root, 6, "project/.torchyard/store")


DEEDS = {
    "job": PowerDeed(_with_source, _run, _has_results, _has_results),
    "collection": PowerDeed(_with_core, _collect, _has_results, lambda root: _has_results(root, 0)),
    "copy": PowerDeed(
        _with_core,
        _copy,
        lambda root: _has_results(root, name="copy"),
        lambda root: _has_results(root, name="copy"),
    ),
    "first publish": PowerDeed(lambda _: None, _in_channel("first"), _reads, _is_published(1)),
    "publish": PowerDeed(_in_channel("first"), _in_channel("later"), _reads, _is_published(2)),
    "prune": PowerDeed(
        _in_channel("first", "later"), _in_channel("prune"), _reads, _is_published(3)
    ),
    "promote": PowerDeed(_with_source_channel, _in_channel("promote"), _reads, _is_published(1)),
    "build": PowerDeed(
        lambda root: make_project(root / "project", WORKS), _build, _is_built, _is_built
    ),
}


if __name__ == "__main__":
    DEEDS[sys.argv[1]].do(Path(sys.argv[2]))
