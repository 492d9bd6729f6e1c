"""The toolchains of this machine."""

from collections.abc import Mapping
from typing import Literal

from torchyard.model.values import Reported
from torchyard.terminal.tables import Lines, folded, styled, table, word


class FoundPython(Reported, kw_only=True):
    """A CPython; compiling against it needs its headers."""

    tag: str
    version: str
    origin: str
    path: str
    headers: bool


class ToolchainPart(Reported):
    """A tool or library of a build; `path` is null for a download from PyPI."""

    identity: str
    path: str | None = None


class ToolchainReport(Reported, kw_only=True):
    """`torchyard toolchain --json`: `parts` and `missing` are about the file, if any."""

    version: Literal[1] = 1
    platform: str
    interpreters: list[FoundPython]
    compilers: list[ToolchainPart]
    toolkits: dict[str, list[ToolchainPart]]
    blas: list[ToolchainPart]
    libraries: list[ToolchainPart]
    parts: dict[str, str]
    missing: dict[str, str]


def toolchain_text(report: ToolchainReport) -> Lines:
    """Show interpreters, all parts with their identities, and the file's parts."""
    yield styled(report.platform, "bold")
    yield ""
    if report.interpreters:
        yield table(
            (*map(word, ("python", "version", "from", "headers")), folded("path")),
            (
                (p.tag, p.version, p.origin, "yes" if p.headers else "no", p.path)
                for p in report.interpreters
            ),
        )
        yield ""
    groups = {"compiler": report.compilers, **report.toolkits, "BLAS": report.blas}
    if report.libraries:
        groups["library"] = report.libraries
    yield from _parts(groups)
    if report.parts or report.missing:
        yield ""
        missing = {name: f"missing: {why}" for name, why in report.missing.items()}
        rows = (*report.parts.items(), *missing.items())
        yield table((word("the file's"), folded("is compiled with")), rows)


def _parts(groups: Mapping[str, list[ToolchainPart]]) -> Lines:
    yield table(
        (word("kind"), folded("identity"), folded("path")),
        (
            (kind, part.identity, part.path or "·")
            for kind, parts in groups.items()
            for part in parts or [ToolchainPart("none found")]
        ),
    )
