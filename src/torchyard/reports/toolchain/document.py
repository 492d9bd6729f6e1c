"""What `torchyard toolchain` prints with `--json`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

import msgspec

from torchyard.compute.features import SYSTEM_PREFIXES, FoundFeature, find_feature
from torchyard.compute.registry import compute_platforms
from torchyard.errors import HostError
from torchyard.model.values import Reported
from torchyard.toolchain.machine import Machine


class InterpreterDocument(Reported, kw_only=True):
    """A CPython; without headers nothing can be compiled against it."""

    tag: str
    version: str
    origin: str
    path: str
    headers: bool


class PartDocument(Reported, kw_only=True):
    """Something that compiles, or is linked; `place` is none for what PyPI would give."""

    identity: str
    place: str | None


class ToolchainDocument(Reported, kw_only=True):
    """`torchyard toolchain --json`: `parts` and `missing` are about the file, if there is one.

    The toolkits of each compute platform have a key of its name.
    """

    version: Literal[1] = 1
    platform: str
    interpreters: list[InterpreterDocument]
    compilers: list[PartDocument]
    blas: list[PartDocument]
    libraries: list[PartDocument]
    parts: dict[str, str]
    missing: dict[str, str]


_TOOLKITS = {one.name: one.title for one in compute_platforms() if one.cmake_switch}

_WithToolkits = msgspec.defstruct(
    "ToolchainDocument",
    [(name, list[PartDocument]) for name in _TOOLKITS],
    bases=(ToolchainDocument,),
    namespace={"__doc__": ToolchainDocument.__doc__},
    frozen=True,
    kw_only=True,
)

TOOLCHAIN_SCHEMA: type[msgspec.Struct] = _WithToolkits
"""What is printed, with the keys of the compute platforms."""


def toolchain_document(machine: Machine, parts: Mapping[str, str | HostError]) -> ToolchainDocument:
    found = [
        InterpreterDocument(
            tag=one.tag,
            version=one.version,
            origin=one.origin,
            path=one.path,
            headers=one.headers,
        )
        for one in machine.interpreters
    ]
    toolkits = {
        name: [_part(one.identity, one.origin, one.root) for one in machine.toolkits.get(name, ())]
        for name in _TOOLKITS
    }
    document = _WithToolkits(
        platform=machine.platform,
        interpreters=found,
        compilers=[PartDocument(identity=one.identity, place=one.cc) for one in machine.compilers],
        blas=[_part(one.identity, one.origin, one.root) for one in machine.blas],
        libraries=_libraries(machine),
        parts={name: part for name, part in parts.items() if isinstance(part, str)},
        missing={name: _why(part) for name, part in parts.items() if isinstance(part, HostError)},
        **toolkits,
    )
    return cast("ToolchainDocument", document)


def _libraries(machine: Machine) -> list[PartDocument]:
    """Return libraries such as cuDNN that are in the system's toolkits, or beside them."""
    places: dict[FoundFeature, str] = {}
    for platform in compute_platforms():
        features = platform.table().machine.features.values()
        for kit in machine.toolkits.get(platform.name, ()):
            prefixes = [Path(kit.root), *SYSTEM_PREFIXES] if kit.origin == "system" else []
            found = ((find_feature(one, prefixes), one.title) for one in features)
            places |= {one: title for one, title in found if one}
    return [
        PartDocument(identity=f"{title} {one.version}".strip(), place=str(one.library))
        for one, title in places.items()
    ]


def toolkits_by_title(document: ToolchainDocument) -> dict[str, list[PartDocument]]:
    """Return the toolkits of each compute platform, by its name in sentences."""
    return {title: getattr(document, name) for name, title in _TOOLKITS.items()}


def _part(identity: str, origin: str, root: str) -> PartDocument:
    return PartDocument(identity=identity, place=(root or None) if origin == "system" else None)


def _why(error: HostError) -> str:
    (said, *_) = error.diagnostics
    return f"{said.what}; {said.hint}" if said.hint else said.what
