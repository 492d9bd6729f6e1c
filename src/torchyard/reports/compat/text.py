"""With which torch releases wheels load, for people."""

from collections.abc import Iterator, Mapping
from typing import assert_never

from rich.console import Group, RenderableType
from rich.text import Text

from torchyard.checks.compat.matrix import ObstacleKind
from torchyard.model.quantity import listed
from torchyard.reports.compat.document import (
    CompatDocument,
    CompatWheelDocument,
    LoadDocument,
    ObstacleDocument,
)
from torchyard.reports.tables import folded, indented, table, word
from torchyard.terminal.untrusted import printable

_YES, _NO = Text("yes", style="green"), Text("no", style="bold red")
_LONGEST = 150
"""How much is shown of a C++ name."""


def compat_report(document: CompatDocument, readable: Mapping[str, str]) -> RenderableType:
    """Show a table for each wheel, and what follows for its requirement."""
    parts: list[RenderableType] = []
    for wheel in document.wheels:
        parts += [""] if parts else []
        parts.append(Text(printable(wheel.file), style="bold", overflow="fold"))
        rows = (_row(release, readable) for release in wheel.releases)
        parts += [table([word("torch"), word("CUDA"), word("loads"), folded("why not")], rows), ""]
        parts += [indented(line, 0) for line in _summary(wheel)]
    return Group(*parts)


def first_symbols(document: CompatDocument) -> Iterator[str]:
    """Yield the symbols that a report shows."""
    for wheel in document.wheels:
        for release in wheel.releases:
            yield from (one.names[0] for one in release.obstacles)


def _row(release: LoadDocument, readable: Mapping[str, str]) -> list[RenderableType]:
    why = Text("\n".join(_why(one, release, readable) for one in release.obstacles))
    cuda = ", ".join(release.cuda) or "–"
    return [printable(release.torch), cuda, _YES if release.loads else _NO, why]


def _why(obstacle: ObstacleDocument, release: LoadDocument, readable: Mapping[str, str]) -> str:
    member = printable(obstacle.member.rpartition("/")[2])
    name, more = obstacle.names[0], len(obstacle.names) - 1
    match obstacle.kind:
        case ObstacleKind.CUDA:
            brings = ", ".join(release.cuda)
            return f"{member} needs {printable(name)}, and this torch brings CUDA {brings}"
        case ObstacleKind.LIBRARY:
            return f"{member} needs {printable(listed(obstacle.names, 3))}, which it does not have"
        case ObstacleKind.SYMBOL:
            shown = printable(readable.get(name, name))
            cut = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
            others = f", and {more:,} more" if more else ""
            return f"{member} lacks {cut}{others}"
        case _:
            assert_never(obstacle.kind)


def _summary(wheel: CompatWheelDocument) -> Iterator[str]:
    declared = wheel.requires_torch
    if declared is None:
        yield "declares no torch"
    else:
        yield f"declares torch{printable(declared)}" if declared else "declares any torch"
    yield f"loads with {_range(wheel)}"
    if wheel.refuted:
        yield f"its metadata are wrong: they admit {listed(wheel.refuted)}"
    elif wheel.unclaimed:
        yield f"its metadata are narrower than need be: they do not admit {listed(wheel.unclaimed)}"
    else:
        yield "its metadata agree with that"
    holders = _holders(wheel)
    if holders:
        yield f"held by {listed(holders, 3)}"


def _range(wheel: CompatWheelDocument) -> str:
    """Return the releases that a wheel loads with: a range, if they are next to each other."""
    compared = [release.torch for release in wheel.releases]
    if not wheel.loads:
        return f"none of torch {compared[-1]} to {compared[0]}"
    if wheel.loads == compared:
        return f"all of torch {compared[-1]} to {compared[0]}"
    places = [compared.index(version) for version in wheel.loads]
    if len(places) > 1 and places == list(range(places[0], places[-1] + 1)):
        return f"torch {wheel.loads[-1]} to {wheel.loads[0]}"
    return f"torch {listed(wheel.loads)} only"


def _holders(wheel: CompatWheelDocument) -> list[str]:
    """Return the libraries that keep a wheel from loading somewhere."""
    members = (one.member for release in wheel.releases for one in release.obstacles)
    return [printable(member) for member in dict.fromkeys(members)]
