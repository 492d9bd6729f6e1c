"""Operations on channels, for processes that are killed, stopped, or run concurrently."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.channels import Made, conda, libtorch, put, wheel

from torchyard.errors import ElsewhereError, StoreError
from torchyard.index.conda.patch import Correction
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.ops.patch import patch
from torchyard.publish.ops.promote import Route, gather_packages, promote
from torchyard.publish.ops.prune import prune
from torchyard.publish.ops.retention import Keep
from torchyard.publish.ops.rollback import rollback
from torchyard.publish.ops.yank import yank
from torchyard.publish.select import parse_selection

FIRST = (
    wheel("helper"),
    wheel("torch", "1.0", "cpu", ["helper"]),
    wheel("torch", "1.0", "cu130", ["helper"]),
    conda("torch", "1.0"),
    libtorch("1.0", "cpu"),
)
LATER = (
    wheel("helper", "1.1"),
    wheel("torch", "1.1", "cpu", ["helper"]),
    wheel("torch", "1.1", "rocm7", ["helper"]),
    wheel("vision", "1.0", "cpu", ["torch==1.1.*"]),
    conda("torch", "1.1"),
    libtorch("1.1", "cpu"),
)
ROUNDS = 5

IN_THE_WAY = (ElsewhereError, StoreError)
"""A file is just being deleted, or an old state was, without any grace: then one tries again."""

Place = str
Do = Callable[[Place, Place], object]


def spec(day: int) -> ChangeReason:
    """Return a reason dated long after any write of a test: no writer counts as active."""
    return ChangeReason("a test", f"2099-01-{day:02}T00:00:00Z")


def _publish_later(url: Place, _other: Place) -> None:
    put(Channel.at(url), *LATER, at=spec(2).at)


def _publish_large(url: Place, _other: Place) -> None:
    """Publish a wheel that is large enough for a multipart upload."""
    put(Channel.at(url), wheel("torch", "3.0", "cpu", size=9 << 20), at=spec(2).at)


def _yank(url: Place, _other: Place) -> None:
    yank(Channel.at(url), parse_selection(["torch==1.0"]), "broken", spec(3))


def _patch(url: Place, _other: Place) -> None:
    """Correct the records of all conda packages."""
    change = Correction(depends=("helper >=1.1",), dropped=("python",))
    patch(Channel.at(url), lambda _, entry: change.applied(entry), spec(3))


def _prune(url: Place, _other: Place) -> None:
    """Hide all but the newest, and delete them later: not at once, if pages were stale."""
    for day in (4, 14, 15):
        prune(Channel.at(url), Keep(versions=1, grace=timedelta(days=2)), spec(day))


def _roll_back(url: Place, _other: Place) -> None:
    rollback(Channel.at(url), 1, spec(3))


def _promote(url: Place, other: Place) -> None:
    source, target = Channel.at(other), Channel.at(url, make=True)
    found = gather_packages(source, parse_selection(["*"]), spec(5).at)
    with TemporaryDirectory() as scratch:
        promote(Route(source, target, Path(scratch)), target.head(), found, spec(5))


def _compete(url: Place, name: str) -> None:
    """Publish version after version of a shared project, and of one of its own."""
    channel = Channel.at(url, make=True)
    for number in range(ROUNDS):
        put(channel, *round_of(name, number))


def round_of(name: str, number: int) -> tuple[Made, ...]:
    return (
        wheel("torch", f"{number}.{name}", "cpu"),
        wheel(f"own{name}", f"{number}.0", f"cu{name}"),
    )


SEVERAL = 10
"""How often `insist` and `sweep` change a channel together, at least."""


def _insist(url: Place, _name: str) -> None:
    """Publish the same versions repeatedly, also those that others hide or delete."""
    channel = Channel.at(url)
    for number in _turns(channel, 40):
        version = f"1.{number % 4}"
        with suppress(*IN_THE_WAY):
            put(channel, wheel("torch", version, "cpu"), conda("torch", version))


def _sweep(url: Place, _name: str) -> None:
    """Hide all but the newest version, and delete hidden files without a grace period."""
    channel = Channel.at(url)
    for number in _turns(channel, 28):
        with suppress(*IN_THE_WAY):
            prune(channel, Keep(versions=1, grace=timedelta(0)), spec(min(number + 1, 28)))


def _turns(channel: Channel, least: int) -> Iterator[int]:
    """Count, and go on until there were changes by others: a busy machine may run one at a time."""
    for number in range(100 * least):
        if number >= least and channel.head().generation > SEVERAL:
            return
        yield number
        time.sleep(0.01)


DEEDS: Mapping[str, Do] = {
    "first": lambda url, _: put(Channel.at(url, make=True), *FIRST, at=spec(1).at),
    "later": _publish_later,
    "large": _publish_large,
    "yank": _yank,
    "patch": _patch,
    "prune": _prune,
    "rollback": _roll_back,
    "promote": _promote,
    "compete": _compete,
    "insist": _insist,
    "sweep": _sweep,
}
"""The second address is that of another channel, or the name of a competitor."""
