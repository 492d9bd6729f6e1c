"""Checks of the machine: their findings, and their registration.

A check is a small function over a `Bench`. It yields what it has seen, and troubles with the
commands that fix them. Its docstring is its entry in the guide.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import NamedTuple

from torchyard.doctor.bench import Bench
from torchyard.errors import HostError
from torchyard.model.severity import Severity
from torchyard.model.values import Reported


class Seen(NamedTuple):
    """A fact that is right, or worth knowing."""

    what: str


class Trouble(NamedTuple):
    """A problem, why it matters, and the command that fixes it.

    `cure` is typed in the shell that builds, or added to torchyard.toml; it is empty if no command
    can help. If `fixable`, `--fix` may run it: it only changes the source tree and the activated
    environment, and only files that can be made again.
    """

    what: str
    why: str
    cure: str = ""
    severity: Severity = Severity.ERROR
    fixable: bool = False


class MachineFinding(Reported, kw_only=True):
    """A problem of a machine, for reports; a `system` cure affects all users of the machine."""

    check: str
    severity: Severity
    what: str
    why: str
    cure: str
    fixable: bool
    system: bool


class MachineSighting(Reported, kw_only=True):
    """A fact that a check has seen, for reports."""

    check: str
    what: str


Inspect = Callable[[Bench], Iterator[Seen | Trouble]]


class MachineCheck(NamedTuple):
    """A check, by its identifier.

    `by_hand` checks are only for builds started in a shell: jobs of torchyard have their own
    environment. `outside` checks are of the machine itself, even if the build has a root.
    """

    id: str
    page: str
    inspect: Inspect
    by_hand: bool = False
    outside: bool = False


MACHINE_CHECKS: dict[str, MachineCheck] = {}
"""All checks except those of compute platforms; filled by `torchyard.doctor.registry`."""


def machine_check(
    identifier: str, *, by_hand: bool = False, outside: bool = False
) -> Callable[[Inspect], Inspect]:
    """Register a function as a check; ids name the subject first: `cmake-cache`."""

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
    """Return a check for a compute platform's list."""
    page = inspect.cleandoc(find.__doc__ or "")
    return MachineCheck(identifier, page, find, by_hand=by_hand, outside=outside)
