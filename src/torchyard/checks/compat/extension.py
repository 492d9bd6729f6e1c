"""A wheel with an extension: what its libraries need of others."""

from collections.abc import Iterator
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from torchyard.checks.compare import is_of_runtime
from torchyard.checks.compat.abi import MeasuredAbi, measure_abi
from torchyard.checks.compat.table import TORCH, load_compat_table, torch_libraries
from torchyard.checks.compat.toolkits import parse_requirements, required_toolkits
from torchyard.checks.compat.torch_symbols import symbol_digest
from torchyard.checks.loader.companions import is_vendors, without_digest
from torchyard.model.matrix import any_match
from torchyard.model.values import Value
from torchyard.package.contents import Binary
from torchyard.package.elf.symbols import split_names
from torchyard.package.policy import load_layouts
from torchyard.package.wheel.metadata import fields_of, values
from torchyard.package.wheel.name import ABI3, WheelName
from torchyard.package.wheel.parts import WheelParts


class Undefined(NamedTuple):
    """A symbol that a library needs, the digest of its name, and whether only torch can have it.

    If it is not sure, it is torch's if a torch release exports it.
    """

    name: str
    digest: int
    is_torchs: bool


class ExtensionLibrary(Value, kw_only=True):
    """A library of a wheel: what it needs that is not in the wheel itself."""

    member: str
    needed: tuple[str, ...]
    undefined: tuple[Undefined, ...]


class ExtensionWheel(Value, kw_only=True):
    """A wheel, and what it declares."""

    name: WheelName
    libraries: tuple[ExtensionLibrary, ...]
    requires_torch: str | None
    """The versions of torch that it declares, such as `>=2.10`; None if it declares no torch."""
    toolkits: tuple[str, ...] = ()
    """The toolkits whose wheels it declares, such as `CUDA 12`."""
    abi: MeasuredAbi

    def admits(self, version: str) -> bool:
        """Return whether its metadata admit a release of torch."""
        return SpecifierSet(self.requires_torch or "").contains(version, prereleases=True)


def read_extension(wheel: WheelParts) -> ExtensionWheel:
    """Read the libraries of a wheel, and what it requires."""
    binaries = {name: binary for name in wheel.libraries() if (binary := wheel.binary(name))}
    required = values(fields_of(wheel.metadata), "Requires-Dist")
    name = WheelName.parse(wheel.name)
    return ExtensionWheel(
        name=name,
        libraries=tuple(_libraries(binaries)),
        requires_torch=torch_versions(required),
        toolkits=tuple(sorted(required_toolkits(required))),
        abi=measure_abi(binaries, is_abi3=ABI3 in name.abi.split(".")),
    )


def _libraries(binaries: dict[str, Binary]) -> Iterator[ExtensionLibrary]:
    own = {name for binary in binaries.values() for name in split_names(binary.exports)}
    beside = {member.rpartition("/")[2] for member in binaries}
    beside |= {binary.soname for binary in binaries.values()}
    for member, binary in binaries.items():
        needed = tuple(name for name in binary.needed if name not in beside)
        wanted = set(split_names(binary.imports)) - set(split_names(binary.weak)) - own
        is_closed = all(map(_is_known, needed))
        undefined = (_undefined(name, is_closed=is_closed) for name in sorted(wanted))
        yield ExtensionLibrary(
            member=member, needed=needed, undefined=tuple(filter(None, undefined))
        )


def _undefined(raw: bytes, *, is_closed: bool) -> Undefined | None:
    """Return a symbol that may be torch's; None if others provide it.

    Without a name of torch, it may come from any library that is not known.
    """
    name = raw.decode(errors="backslashreplace")
    table = load_compat_table()
    is_torchs = table.is_torchs(name)
    if not is_torchs and (not is_closed or table.is_others(name) or is_of_runtime(name)):
        return None
    return Undefined(name, symbol_digest(raw), is_torchs)


def _is_known(library: str) -> bool:
    """Return whether it is known which symbols a library has: those of torch, or none of these."""
    layouts = load_layouts()
    return (
        bool(torch_libraries([library]))
        or any_match(library, (*layouts.system, *layouts.drivers))
        or is_vendors(without_digest(library))
    )


def torch_versions(required: list[str]) -> str | None:
    """Return the declared versions of torch, without those of extras."""
    found = [
        str(requirement.specifier)
        for requirement in parse_requirements(required)
        if canonicalize_name(requirement.name) == TORCH
    ]
    return ",".join(filter(None, found)) if found else None
