"""What a check of the machine is, what it finds, and how checks are registered.

A check is a small function over a `Bench`. It yields what it has seen, and what is wrong together
with the command that mends it. Its docstring is its entry in the guide.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import NamedTuple

from torchyard.doctor.bench import Bench
from torchyard.errors import HostError
from torchyard.model.severity import Severity
from torchyard.model.values import Reported


class Seen(NamedTuple):
    """Something that is as it should be, or that is worth to know."""

    what: str


class Trouble(NamedTuple):
    """Something that is wrong, why it matters, and the command that mends it.

    `cure` is typed in the shell that builds, or added to torchyard.toml; it is empty if no command
    can help. If `fixable`, `--fix` may run it: it changes nothing outside of the source tree and
    the activated environment, and nothing that is not made again.
    """

    what: str
    why: str
    cure: str = ""
    severity: Severity = Severity.ERROR
    fixable: bool = False


class MachineFinding(Reported, kw_only=True):
    """Something that is wrong with a machine, as reports have it.

    A cure of the `system` changes it for everybody who uses the machine.
    """

    check: str
    severity: Severity
    what: str
    why: str
    cure: str
    fixable: bool
    system: bool


class MachineSighting(Reported, kw_only=True):
    """Something that a check has seen, as reports have it."""

    check: str
    what: str


Inspect = Callable[[Bench], Iterator[Seen | Trouble]]


class MachineCheck(NamedTuple):
    """A check, by its identifier.

    `by_hand`: only of builds that are started in a shell; jobs of torchyard have an environment of
    their own. `outside`: of the machine itself, even if a build has a root.
    """

    id: str
    page: str
    inspect: Inspect
    by_hand: bool = False
    outside: bool = False


MACHINE_CHECKS: dict[str, MachineCheck] = {}
"""The checks that are no compute platform's; `torchyard.doctor.registry` fills it."""


def machine_check(
    identifier: str, *, by_hand: bool = False, outside: bool = False
) -> Callable[[Inspect], Inspect]:
    """Make a function a check of the machine: `cmake-cache`, the subject first."""

    def decorate(inspect: Inspect) -> Inspect:
        made = make_check(identifier, inspect, by_hand=by_hand, outside=outside)
        if identifier in MACHINE_CHECKS:
            msg = f"there are two checks `{identifier}` of the machine"
            raise HostError(msg)
        MACHINE_CHECKS[identifier] = made
        return inspect

    return decorate


def make_check(
    identifier: str, find: Inspect, *, by_hand: bool = False, outside: bool = False
) -> MachineCheck:
    """Return a check, for the list of a compute platform."""
    page = inspect.cleandoc(find.__doc__ or "")
    return MachineCheck(identifier, page, find, by_hand=by_hand, outside=outside)
