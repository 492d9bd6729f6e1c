"""With which torch releases wheels load, for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from rich.console import Group, RenderableType
from rich.text import Text

from torchyard.checks.compat.matrix import ObstacleKind
from torchyard.checks.compat.toolkits import library_toolkits
from torchyard.checks.smoke.outcome import Outcome
from torchyard.reports.abi import abi_words, python_words, torch_words
from torchyard.reports.compat.document import (
    CompatDocument,
    CompatWheelDocument,
    LoadDocument,
    ObstacleDocument,
)
from torchyard.reports.tables import folded, indented, table, word
from torchyard.terminal.untrusted import printable

_YES, _NO = Text("yes", style="green"), Text("no", style="bold red")
_OUTCOMES = {
    Outcome.PASSED: _YES,
    Outcome.FAILED: _NO,
    Outcome.CRASHED: _NO,
    Outcome.TIMED_OUT: _NO,
}
_LONGEST = 120
"""How much is shown of a C++ name."""


def compat_report(document: CompatDocument, readable: Mapping[str, str]) -> RenderableType:
    """Show a table for each wheel, and what follows for its requirement.

    Without releases to compare with, there is one table of ABI classes.
    """
    if not any(wheel.releases for wheel in document.wheels):
        return _abi_table(document)
    parts: list[RenderableType] = []
    for wheel in document.wheels:
        parts += [""] if parts else []
        parts.append(Text(printable(wheel.file), style="bold", overflow="fold"))
        tried = any(release.tried for release in wheel.releases)
        columns = [word("torch"), word("brings"), word("loads"), *[word("tried")] * tried]
        rows = (_row(release, readable, tried=tried) for release in wheel.releases)
        parts += [table([*columns, folded("why not")], rows), ""]
        parts += [indented(line, 0) for line in _summary(wheel)]
    return Group(*parts)


def _abi_table(document: CompatDocument) -> RenderableType:
    """Show the ABI classes of wheels, what they fit, and how many builds would do."""
    rows = (
        [
            printable(wheel.file),
            wheel.abi.name,
            python_words(wheel.abi.python),
            torch_words(wheel.abi.torch),
        ]
        for wheel in document.wheels
    )
    shown = table([folded("file"), word("ABI"), word("fits"), word("by its functions")], rows)
    count = len(document.wheels)
    return Group(shown, *(["", _fold(document)] if count > 1 else []))


def _fold(document: CompatDocument) -> str:
    count = len(document.wheels)
    if document.builds == count:
        return f"{count} wheels, all of them needed"
    return f"{count} wheels; as their symbols allow, {document.builds} would do"


def first_symbols(document: CompatDocument) -> Iterator[str]:
    """Yield the symbols that a report shows."""
    for wheel in document.wheels:
        for release in wheel.releases:
            yield from (one.names[0] for one in release.obstacles)


def _row(
    release: LoadDocument, readable: Mapping[str, str], *, tried: bool
) -> list[RenderableType]:
    kinds = {one.kind: one for one in reversed(release.obstacles)}
    lines = [_why(kinds[kind], release, readable) for kind in ObstacleKind if kind in kinds]
    brings = ", ".join(release.toolkits) or "–"
    loads = [_YES if release.loads else _NO]
    if tried:
        loads.append(_OUTCOMES.get(_outcome(release), Text("–")))
    if release.tried and release.tried.why:
        lines.append(f"when tried: {printable(release.tried.why)}")
    return [printable(release.torch), brings, *loads, Text("\n".join(lines))]


def _outcome(release: LoadDocument) -> Outcome:
    return release.tried.outcome if release.tried else Outcome.NOT_RUN


def _why(first: ObstacleDocument, release: LoadDocument, readable: Mapping[str, str]) -> str:
    """Return the first obstacle of a kind, and how many other libraries have one."""
    member = printable(first.member.rpartition("/")[2])
    name, more = first.names[0], len(first.names) - 1
    others = sum(one.kind is first.kind for one in release.obstacles) - 1
    also = f"; also {others:,} more {'libraries' if others > 1 else 'library'}" if others else ""
    match first.kind:
        case ObstacleKind.TOOLKIT:
            return f"{member} needs {_toolkit(name)}{also}"
        case ObstacleKind.LIBRARY:
            return f"{member} needs {printable(_joined(first.names, 3))}{also}"
        case ObstacleKind.SYMBOL | ObstacleKind.UNDEFINED:
            shown = printable(readable.get(name, name))
            cut = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
            rest = f" and {more:,} more" if more else ""
            nowhere = ", which nothing defines" if first.kind is ObstacleKind.UNDEFINED else ""
            return f"{member} needs {cut}{rest}{nowhere}{also}"
        case _:
            assert_never(first.kind)


def _toolkit(name: str) -> str:
    """Return the toolkit that a library is of, and the library; or a toolkit itself."""
    toolkits = ", ".join(library_toolkits([name]))
    return f"{toolkits} ({printable(name)})" if toolkits else printable(name)


def _summary(wheel: CompatWheelDocument) -> Iterator[str]:
    declared = wheel.requires_torch
    if declared is None:
        yield "declares no torch"
    else:
        yield f"declares torch{printable(declared)}" if declared else "declares any torch"
    yield f"loads with {_range(wheel)}"
    yield f"ABI class {abi_words(wheel.abi)}"
    if wheel.is_broken:
        yield "no torch makes it load: it needs what nothing defines"
    elif wheel.refuted:
        yield f"its metadata are wrong: they admit {_joined(wheel.refuted)}"
    elif wheel.unclaimed:
        yield f"its metadata could also admit {_joined(wheel.unclaimed)}"
    else:
        yield "its metadata agree with that"
    holders = _holders(wheel)
    if holders:
        yield f"held by {_joined(holders, 3)}"


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
    return f"torch {_joined(wheel.loads)} only"


def _joined(names: Sequence[str], most: int = 10) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def _holders(wheel: CompatWheelDocument) -> list[str]:
    """Return the libraries that keep a wheel from loading somewhere."""
    members = (one.member for release in wheel.releases for one in release.obstacles)
    return [printable(member) for member in dict.fromkeys(members)]
