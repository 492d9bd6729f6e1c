"""The environment of a cell: variables, scripts, and its activation."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from torchyard.errors import UsageError
from torchyard.model.values import Reported
from torchyard.terminal.tables import Lines, folded, styled, table, word
from torchyard.toolchain.activation import UNDO, CellEnvironment, EnvironmentPart, Shell, own_shell
from torchyard.toolchain.variables import LISTS


class EnvReport(Reported, kw_only=True):
    """`torchyard toolchain activate --json`: variables, and folders to prepend.

    `scripts` are the files to source, by shell.
    """

    version: Literal[1] = 1
    cell: str
    folder: str
    parts: tuple[EnvironmentPart, ...]
    set: dict[str, str]
    prepend: dict[str, list[str]]
    scripts: dict[str, str]

    @classmethod
    def of(cls, made: CellEnvironment) -> "EnvReport":
        variables = sorted(made.variables.items())
        return cls(
            cell=made.cell,
            folder=made.folder,
            parts=made.parts,
            set={name: value for name, value in variables if name not in LISTS},
            prepend={name: value.split(":") for name, value in variables if name in LISTS},
            scripts={shell.value: str(made.script(shell)) for shell in Shell},
        )


def toolchain_activate_text(
    report: EnvReport, *, shell: str | None = None, diff: bool = False
) -> Lines | bytes:
    """Show an environment's activation and parts, or its script, or its changes.

    Args:
        report: The environment.
        shell: Return the script for this shell.
        diff: Show which variables of this process's shell would change.
    """
    if shell and diff:
        msg = "--shell and --diff exclude each other"
        raise UsageError(msg)
    if shell:
        return Path(report.scripts[shell]).read_bytes()
    return _changes(report) if diff else _parts(report)


def _parts(report: EnvReport) -> Lines:
    yield styled(report.cell, "bold")
    yield ""
    yield table(
        (word("part"), folded("identity"), folded("path")),
        ((part.part, part.identity, part.path or "·") for part in report.parts),
    )
    yield ""
    script, here = Path(report.scripts[own_shell()]), Path.cwd()
    script = script.relative_to(here) if script.is_relative_to(here) else script
    yield styled(f"enter it: source {shlex.quote(str(script))}\nleave it: {UNDO}")


def _changes(report: EnvReport) -> Lines:
    """Show which variables of a shell would change; `…` is the present value."""
    rows = list(_changed(report))
    if rows:
        yield table((word("variable"), folded("now"), folded("then")), rows)
    else:
        yield styled("nothing would change: this environment is active")


def _changed(report: EnvReport) -> Iterator[tuple[str, str, str]]:
    lists = {name: ":".join(folders) for name, folders in report.prepend.items()}
    for name, value in sorted({**report.set, **lists}.items()):
        before = os.environ.get(name)
        if name in lists and before:
            if not f"{before}:".startswith(f"{value}:"):
                yield name, "…", f"{value}:…"
        elif before != value:
            yield name, "not set" if before is None else before, value
