"""The toolchains of this machine."""

from collections.abc import Mapping
from typing import Literal

from torchyard.model.values import Reported
from torchyard.terminal.tables import Lines, folded, styled, table, word


class FoundPython(Reported, kw_only=True):
    """A CPython; without headers nothing can be compiled against it."""

    tag: str
    version: str
    origin: str
    path: str
    headers: bool


class ToolchainPart(Reported):
    """Something that compiles, or is linked; `place` is none for what PyPI would give."""

    identity: str
    place: str | None = None


class ToolchainReport(Reported, kw_only=True):
    """`torchyard toolchain --json`: `parts` and `missing` are about the file, if there is one."""

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
    """Show interpreters, all parts with their identities, and what the file would use."""
    yield styled(report.platform, "bold")
    yield ""
    if report.interpreters:
        yield table(
            (*map(word, ("python", "version", "from", "headers")), folded("path")),
            (
                (one.tag, one.version, one.origin, "yes" if one.headers else "no", one.path)
                for one in report.interpreters
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
        (word("kind"), folded("identity"), folded("place")),
        (
            (kind, part.identity, part.place or "·")
            for kind, parts in groups.items()
            for part in parts or [ToolchainPart("none found")]
        ),
    )
