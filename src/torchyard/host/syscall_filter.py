"""The filter for system calls of steps in a sandbox: a program for the kernel (seccomp)."""

import errno
import os
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.values import Value

_NUMBER, _MACHINE, _FLAGS = 0, 4, 16
"""Offsets in what the kernel passes: the call's number, the machine, the first argument."""
_ARGUMENT = 8
"""The bytes of an argument."""

_LOAD, _EQUAL, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_X32 = 0x40000000
"""The first number of another set of calls, on x86_64."""
_NEW_USER = 0x10000000

_Numbers = dict[str, dict[str, int]]


class _Calls(Value, kw_only=True):
    """`data/syscalls.toml`: numbers of calls by name and machine."""

    machines: dict[str, int]
    forbidden: _Numbers
    absent: _Numbers
    namespaces: _Numbers
    sockets: _Numbers
    traceless: _Numbers
    families: dict[str, int]


@cache
def filter_program(machine: str = os.uname().machine) -> bytes:
    """Return the filter for a machine; b"" if its calls are unknown, or the kernel has none."""
    if "\nSeccomp:" not in Path("/proc/self/status").read_text(encoding="ascii", errors="replace"):
        return b""
    calls = parse_table("syscalls.toml", read_data("syscalls.toml"), _Calls)
    if machine not in calls.machines:
        return b""
    forbidden, absent = _ERROR | errno.EPERM, _ERROR | errno.ENOSYS
    return b"".join(
        (
            _instruction(_LOAD, _MACHINE),
            _instruction(_EQUAL, calls.machines[machine], 1, 0),
            _instruction(_RETURN, absent),
            _instruction(_LOAD, _NUMBER),
            _instruction(_AT_LEAST, _X32, 0, 1),
            _instruction(_RETURN, absent),
            *(_answered(number, forbidden) for number in _of(calls.forbidden, machine)),
            *(_answered(number, absent) for number in _of(calls.absent, machine)),
            *(_refused(number, 0, _NEW_USER) for number in _of(calls.namespaces, machine)),
            *(
                _without_trace(call[machine], call)
                for call in calls.traceless.values()
                if machine in call
            ),
            *(_of_family(number, calls.families) for number in _of(calls.sockets, machine)),
            _instruction(_RETURN, _ALLOW),
        )
    )


def _of(calls: _Numbers, machine: str) -> Iterable[int]:
    return (numbers[machine] for numbers in calls.values() if machine in numbers)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return an instruction; a jump skips `if_true` or `if_false` instructions."""
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _answered(number: int, answer: int) -> bytes:
    return _instruction(_EQUAL, number, 0, 1) + _instruction(_RETURN, answer)


def _refused(number: int, argument: int, bits: int, *, command: int | None = None) -> bytes:
    """Forbid a call if an argument has any of these bits, and its second one is the command."""
    test = (
        _instruction(_LOAD, _FLAGS + argument * _ARGUMENT)
        + _instruction(_HAS_BITS, bits, 0, 1)
        + _instruction(_RETURN, _ERROR | errno.EPERM)
    )
    if command is not None:
        test = _instruction(_LOAD, _FLAGS + _ARGUMENT) + _instruction(_EQUAL, command, 0, 3) + test
    skipped = len(test) // len(_instruction(_LOAD, 0)) + 1
    return _instruction(_EQUAL, number, 0, skipped) + test + _instruction(_LOAD, _NUMBER)


def _without_trace(number: int, call: Mapping[str, int]) -> bytes:
    """Forbid a call with some bits in an argument, or with a command."""
    command = call.get("command")
    bits = call.get("bits", command or 0)
    return _refused(number, call.get("argument", 1), bits, command=command)


def _of_family(number: int, families: Mapping[str, int]) -> bytes:
    """Allow a call for sockets of some families."""
    left = len(families)
    return b"".join(
        (
            _instruction(_EQUAL, number, 0, left + 3),
            _instruction(_LOAD, _FLAGS),
            *(_instruction(_EQUAL, one, left - n) for n, one in enumerate(families.values())),
            _instruction(_RETURN, _ERROR | errno.EAFNOSUPPORT),
            _instruction(_LOAD, _NUMBER),
        )
    )
