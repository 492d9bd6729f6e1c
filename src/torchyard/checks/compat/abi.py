"""The ABI class of an extension, measured from its libraries.

A library uses all of the C API of Python, or only the stable ABI; all of torch's C++ functions, or
only its stable C functions (`aoti_torch_*`, `torch_*`). The less it uses, the more releases of
Python or torch it fits, and the fewer builds a matrix needs.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache

from torchyard.checks.compat.stable_names import Release, stable_abi, torch_shims
from torchyard.checks.compat.table import load_compat_table, torch_libraries
from torchyard.checks.subject import Subject
from torchyard.model.abi import AbiClass
from torchyard.model.values import Value
from torchyard.package.contents import Binary
from torchyard.package.elf.symbols import free_names, split_names
from torchyard.package.wheel.name import ABI3

_PYTHON = re.compile(rb"\0(_?Py[^\0]*)(?=\0)")
_LIMITED = ".abi3."


class ApiUse(StrEnum):
    """How much of an API is used."""

    NONE = "none"
    STABLE = "stable"
    FULL = "full"


class ApiNeed(Value, kw_only=True):
    """What is used of an API, and the oldest release that has all of it, if that is known.

    `symbol` of `member` is the newest function of a stable ABI that is used, or one outside of it.
    """

    use: ApiUse = ApiUse.NONE
    floor: Release | None = None
    member: str = ""
    symbol: str = ""


class MeasuredAbi(Value, kw_only=True):
    """What an extension needs of Python and of torch."""

    python: ApiNeed
    torch: ApiNeed

    @property
    def name(self) -> AbiClass:
        """The class of both together."""
        if self.python.use is ApiUse.FULL:
            return AbiClass.FULL if self.torch.use is ApiUse.FULL else AbiClass.STABLE
        return AbiClass.ABI3 if self.torch.use is ApiUse.FULL else AbiClass.BOTH


class _Used(Value, kw_only=True):
    """A function that a library uses: whether it is of the stable ABI, and since when."""

    member: str
    symbol: str
    is_stable: bool
    since: Release | None


def measure_abi(binaries: Mapping[str, Binary], *, is_abi3: bool) -> MeasuredAbi:
    """Return what libraries need of Python and torch, besides what they define themselves.

    A library that uses functions of Python counts as stable only if it says so, by its name
    (`.abi3.so`) or the wheel's tag: else macros may use the layout of Python's objects, of which
    no symbol tells.
    """
    own = {name for binary in binaries.values() for name in split_names(binary.exports)}
    return MeasuredAbi(
        python=_need(_python_uses(binaries, own, is_abi3=is_abi3)),
        torch=_need(_torch_uses(binaries, own)),
    )


@lru_cache(maxsize=1)
def abi_of(subject: Subject) -> MeasuredAbi | None:
    """Return what a package with an extension needs; None if it has none, or is torch itself."""
    files = subject.contents.files.values()
    binaries = {file.name: file.binary for file in files if file.binary is not None}
    table = load_compat_table()
    if torch_libraries(name.rpartition("/")[2] for name in binaries):
        return None
    if not any(table.may_use_torch(binary.imports) for binary in binaries.values()):
        return None  # without a look at each of many names
    abi = measure_abi(binaries, is_abi3=ABI3 in subject.expected.abi.split("."))
    return None if abi.torch.use is ApiUse.NONE else abi


def python_names(binary: Binary) -> set[str]:
    """Return the names of the Python C API that a file needs."""
    if b"Py" not in binary.imports:
        return set()
    return {name.decode(errors="replace") for name in _PYTHON.findall(b"\0" + binary.imports)}


def _python_uses(
    binaries: Mapping[str, Binary], own: set[bytes], *, is_abi3: bool
) -> Iterator[_Used]:
    for member, binary in binaries.items():
        is_limited = is_abi3 or _LIMITED in member
        for name in sorted(python_names(binary)):
            if name.encode() not in own:
                since = stable_abi().get(name) if is_limited else None
                yield _Used(member=member, symbol=name, is_stable=since is not None, since=since)


def _torch_uses(binaries: Mapping[str, Binary], own: set[bytes]) -> Iterator[_Used]:
    table = load_compat_table()
    for member, binary in binaries.items():
        if not table.may_use_torch(binary.imports):
            continue
        wanted = free_names(binary) - own
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
    return ApiNeed(use=ApiUse.STABLE, floor=floor.since, member=floor.member, symbol=floor.symbol)
