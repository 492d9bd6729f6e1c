"""The ABI class of an extension, measured from its libraries.

A library uses Python's whole C API, or only the stable ABI; all of torch's C++ functions, or
only its stable C functions (`aoti_torch_*`, `torch_*`). The less it uses, the more releases of
Python or torch it fits, and the fewer builds a matrix needs.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache

from torchyard.checks.compat.stable_names import (
    Release,
    newest_release,
    show_release,
    stable_abi,
    torch_shims,
)
from torchyard.checks.compat.table import load_compat_table, torch_libraries
from torchyard.checks.subject import Subject
from torchyard.model.abi import AbiClass
from torchyard.model.values import Reported, Value
from torchyard.package.contents import Binary
from torchyard.package.elf.symbols import free_names, split_names
from torchyard.package.wheel.name import ABI3

_PYTHON = re.compile(rb"\0(_?Py[^\0]*)(?=\0)")
_LIMITED = ".abi3."


class ApiUse(StrEnum):
    """The part of an API that is used."""

    NONE = "none"
    STABLE = "stable"
    FULL = "full"


class ApiNeed(Reported, kw_only=True):
    """The use of an API, and the oldest release with all of it, if known.

    `symbol` of `member` is the newest used function of a stable ABI, or one outside of it.
    """

    use: ApiUse = ApiUse.NONE
    floor: str | None = None
    member: str = ""
    symbol: str = ""


class MeasuredAbi(Reported, kw_only=True):
    """The ABI class of an extension, and its needs of Python and of torch."""

    name: AbiClass
    python: ApiNeed
    torch: ApiNeed


def _abi_class(python: ApiNeed, torch: ApiNeed) -> AbiClass:
    if python.use is ApiUse.FULL:
        return AbiClass.FULL if torch.use is ApiUse.FULL else AbiClass.STABLE
    return AbiClass.ABI3 if torch.use is ApiUse.FULL else AbiClass.BOTH


def abi_words(abi: MeasuredAbi) -> str:
    """Return a class with its releases: `both: Python 3.10 or newer, torch 2.11 or newer`."""
    return f"{abi.name}: {python_words(abi.python)}, {torch_words(abi.torch)}"


def python_words(need: ApiNeed) -> str:
    """Return the Pythons that an extension supports."""
    if need.use is ApiUse.FULL:
        return "one Python"
    return f"Python {need.floor} or newer" if need.floor else "any Python"


def torch_words(need: ApiNeed) -> str:
    """Return the torch releases that an extension supports, by its stable functions."""
    if need.use is ApiUse.FULL:
        return "no stable torch"
    if need.use is ApiUse.STABLE and need.floor is None:
        return f"torch after {show_release(newest_release())}"
    return f"torch {need.floor} or newer" if need.floor else "any torch"


class _Used(Value, kw_only=True):
    """A function used by a library: whether it is in the stable ABI, and since when."""

    member: str
    symbol: str
    is_stable: bool
    since: Release | None


def measure_abi(binaries: Mapping[str, Binary], *, is_abi3: bool) -> MeasuredAbi:
    """Return the needs of libraries from Python and torch, besides what they define themselves.

    A library that uses functions of Python counts as stable only if its name (`.abi3.so`) or the
    wheel's tag declares it: otherwise macros may use the layout of Python's objects, which symbols
    do not show.
    """
    exports = {name for binary in binaries.values() for name in split_names(binary.exports)}
    python = _need(_python_uses(binaries, exports, is_abi3=is_abi3))
    torch = _need(_torch_uses(binaries, exports))
    return MeasuredAbi(name=_abi_class(python, torch), python=python, torch=torch)


@lru_cache(maxsize=1)
def abi_of(subject: Subject) -> MeasuredAbi | None:
    """Return the measured ABI of a package; None if it has no extension, or is torch itself."""
    files = subject.contents.files.values()
    binaries = {file.name: file.binary for file in files if file.binary is not None}
    table = load_compat_table()
    if torch_libraries(name.rpartition("/")[2] for name in binaries):
        return None
    if not any(table.may_use_torch(binary.imports) for binary in binaries.values()):
        return None  # a fast check before that of each name
    abi = measure_abi(binaries, is_abi3=ABI3 in subject.expected.abi.split("."))
    return None if abi.torch.use is ApiUse.NONE else abi


def python_names(binary: Binary) -> set[str]:
    """Return the names of the Python C API that a file needs."""
    if b"Py" not in binary.imports:
        return set()
    return {name.decode(errors="replace") for name in _PYTHON.findall(b"\0" + binary.imports)}


def _python_uses(
    binaries: Mapping[str, Binary], exports: set[bytes], *, is_abi3: bool
) -> Iterator[_Used]:
    for member, binary in binaries.items():
        is_limited = is_abi3 or _LIMITED in member
        for name in sorted(python_names(binary)):
            if name.encode() not in exports:
                since = stable_abi().get(name) if is_limited else None
                yield _Used(member=member, symbol=name, is_stable=since is not None, since=since)


def _torch_uses(binaries: Mapping[str, Binary], exports: set[bytes]) -> Iterator[_Used]:
    table = load_compat_table()
    for member, binary in binaries.items():
        if not table.may_use_torch(binary.imports):
            continue
        wanted = free_names(binary) - exports
        for name in sorted(raw.decode(errors="backslashreplace") for raw in wanted):
            if table.is_torchs(name):
                is_shim = table.is_shim(name)
                since = torch_shims().get(name) if is_shim else None
                yield _Used(member=member, symbol=name, is_stable=is_shim, since=since)


def _need(uses: Iterable[_Used]) -> ApiNeed:
    floor: _Used | None = None
    for used in uses:
        if not used.is_stable:
            return ApiNeed(use=ApiUse.FULL, member=used.member, symbol=used.symbol)
        if floor is None or (floor.since and (used.since is None or used.since > floor.since)):
            floor = used
    if floor is None:
        return ApiNeed()
    since = show_release(floor.since) if floor.since else None
    return ApiNeed(use=ApiUse.STABLE, floor=since, member=floor.member, symbol=floor.symbol)
