"""The environment of a cell, for people."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from torchyard.terminal.tables import folded, table, word
from torchyard.toolchain.activation import UNDO, CellEnvironment, Shell
from torchyard.toolchain.variables import LISTS

_UNSET = Text("not set", style="dim")


def environment_report(made: CellEnvironment, shell: Shell, here: Path) -> RenderableType:
    """Show the parts of an environment, and how it is entered and left from a directory."""
    parts = table(
        (word("part"), folded("identity"), folded("place")),
        ((one.part, one.identity, one.place or "·") for one in made.parts),
    )
    script = made.script(shell)
    script = script.relative_to(here) if script.is_relative_to(here) else script
    lines = f"enter it: source {shlex.quote(str(script))}\nleave it: {UNDO}"
    return Group(Text(made.cell, style="bold"), "", parts, "", Text(lines, overflow="fold"))


def environment_diff(made: CellEnvironment, now: Mapping[str, str]) -> RenderableType:
    """Show which variables of a shell would change; `…` is what is there now."""
    rows = list(_changes(made, now))
    if not rows:
        return Text("nothing would change: this environment is active")
    return table((word("variable"), folded("now"), folded("then")), rows)


def _changes(
    made: CellEnvironment, now: Mapping[str, str]
) -> Iterator[tuple[str, RenderableType, str]]:
    for name, value in sorted(made.variables.items()):
        before = now.get(name)
        if name in LISTS and before:
            if not f"{before}:".startswith(f"{value}:"):
                yield name, "…", f"{value}:…"
        elif before != value:
            yield name, _UNSET if before is None else Text(before), value
