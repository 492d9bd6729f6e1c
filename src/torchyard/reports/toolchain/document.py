"""What `torchyard toolchain` prints with `--json`."""

from collections.abc import Mapping
from typing import Literal

from torchyard.errors import HostError
from torchyard.reports.document import JsonDocument
from torchyard.toolchain.machine import Machine


class InterpreterDocument(JsonDocument, kw_only=True):
    """A CPython; without headers nothing can be compiled against it."""

    tag: str
    version: str
    origin: str
    path: str
    headers: bool


class PartDocument(JsonDocument, kw_only=True):
    """Something that compiles, or is linked; `place` is none for what PyPI would give."""

    identity: str
    place: str | None


class ToolchainDocument(JsonDocument, kw_only=True):
    """`torchyard toolchain --json`: `parts` and `missing` are about the file, if there is one."""

    version: Literal[1] = 1
    platform: str
    interpreters: list[InterpreterDocument]
    compilers: list[PartDocument]
    cuda: list[PartDocument]
    rocm: list[PartDocument]
    blas: list[PartDocument]
    parts: dict[str, str]
    missing: dict[str, str]


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
    return ToolchainDocument(
        platform=machine.platform,
        interpreters=found,
        compilers=[PartDocument(identity=one.identity, place=one.cc) for one in machine.compilers],
        cuda=[_part(one.identity, one.origin, one.root) for one in machine.cuda],
        rocm=[PartDocument(identity=one.identity, place=one.root) for one in machine.rocm],
        blas=[_part(one.identity, one.origin, one.root) for one in machine.blas],
        parts={name: part for name, part in parts.items() if isinstance(part, str)},
        missing={name: _why(part) for name, part in parts.items() if isinstance(part, HostError)},
    )


def _part(identity: str, origin: str, root: str) -> PartDocument:
    return PartDocument(identity=identity, place=(root or None) if origin == "system" else None)


def _why(error: HostError) -> str:
    (said, *_) = error.diagnostics
    return f"{said.what}; {said.hint}" if said.hint else said.what
