"""Which torch releases wheels load with."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, assert_never

from torchyard.checks.compat.abi import MeasuredAbi, abi_words, python_words, torch_words
from torchyard.checks.compat.extension import ExtensionWheel
from torchyard.checks.compat.matrix import Obstacle, ObstacleKind
from torchyard.checks.compat.toolkits import library_toolkits
from torchyard.errors import CheckError
from torchyard.host.demangle import demangled
from torchyard.model.quantity import listed
from torchyard.model.values import Reported
from torchyard.smoke.outcome import Outcome, SmokeAttempt
from torchyard.terminal.tables import Lines, folded, indented, styled, table, word
from torchyard.terminal.untrusted import printable

_YES, _NO = ("yes", "green"), ("no", "bold red")
_OUTCOMES = {
    Outcome.PASSED: _YES,
    Outcome.FAILED: _NO,
    Outcome.CRASHED: _NO,
    Outcome.TIMED_OUT: _NO,
}
_LONGEST = 120
"""The longest C++ name to show uncut."""


class ComparedTorch(Reported, kw_only=True):
    """A torch release: whether the wheel loads with it, and whether its metadata admit it.

    `loads` is judged from the symbols of both; `tried` is the outcome of `--run`, else null.
    """

    torch: str
    file: str
    toolkits: Sequence[str]
    loads: bool
    admitted: bool
    obstacles: Sequence[Obstacle]
    tried: SmokeAttempt | None

    @property
    def fails(self) -> bool:
        """Whether it does not load, judged from symbols or by trying."""
        return not self.loads or (self.tried is not None and self.tried.outcome.is_bad)


class ComparedWheel(Reported, kw_only=True):
    """A wheel; `loads` are the releases it loads with, judged from symbols and by trying.

    `refuted` are releases that its metadata admit but that it does not load with, `unclaimed` the
    reverse. Without releases to compare with, the lists are empty.
    """

    file: str
    libraries: int
    requires_torch: str | None
    abi: MeasuredAbi
    releases: list[ComparedTorch]
    loads: list[str]
    refuted: list[str]
    unclaimed: list[str]

    @property
    def is_broken(self) -> bool:
        """Whether it needs symbols that nothing defines."""
        obstacles = (obstacle for release in self.releases for obstacle in release.obstacles)
        return any(obstacle.kind is ObstacleKind.UNDEFINED for obstacle in obstacles)


class CompatReport(Reported, kw_only=True):
    """`torchyard compat --json`: with which torch releases wheels load.

    `builds` is the number of wheels that would suffice, by their ABI classes.
    """

    version: Literal[1] = 1
    builds: int
    wheels: list[ComparedWheel]


def compared_wheel(extension: ExtensionWheel, releases: list[ComparedTorch]) -> ComparedWheel:
    """Return the conclusions for a wheel from its comparison with torch releases."""
    loads = [release.torch for release in releases if not release.fails]
    admitted = [release.torch for release in releases if release.admitted]
    return ComparedWheel(
        file=str(extension.name),
        libraries=len(extension.libraries),
        requires_torch=extension.requires_torch,
        abi=extension.abi,
        releases=releases,
        loads=loads,
        refuted=[version for version in admitted if version not in loads],
        unclaimed=[version for version in loads if version not in admitted],
    )


def compat_error(report: CompatReport) -> CheckError | None:
    """Return an error if a wheel does not load with a release that its metadata admit."""
    broken = [wheel.file for wheel in report.wheels if wheel.is_broken]
    if broken:
        msg = f"{listed(broken, 3)} loads with no torch: symbols that it needs are undefined"
        hint = "compile or link the missing definitions into the package; `torchyard check`"
        return CheckError(msg, hint=f"{hint} says more")
    bad = [wheel for wheel in report.wheels if wheel.refuted]
    if not bad:
        return None
    admitted = ", ".join(bad[0].refuted)
    msg = f"{listed([wheel.file for wheel in bad], 3)} would not load with all that it admits"
    hint = f"exclude torch {admitted} in its Requires-Dist, or build it so that it loads"
    return CheckError(msg, hint=hint)


def compat_text(report: CompatReport) -> Lines:
    """Show a table for each wheel, and conclusions for its requirement.

    Without releases to compare with, there is one table of ABI classes.
    """
    if not any(wheel.releases for wheel in report.wheels):
        yield from _abi_table(report)
        return
    readable = demangled(_first_symbols(report))
    for count, wheel in enumerate(report.wheels):
        if count:
            yield ""
        yield styled(printable(wheel.file), "bold")
        tried = any(release.tried for release in wheel.releases)
        columns = [word("torch"), word("brings"), word("loads"), *[word("tried")] * tried]
        rows = (_row(release, readable, tried=tried) for release in wheel.releases)
        yield table([*columns, folded("why not")], rows)
        yield ""
        yield from (indented(line, 0) for line in _summary(wheel))


def _abi_table(report: CompatReport) -> Lines:
    """Show the ABI classes of wheels, their range, and how many builds would suffice."""
    rows = (
        [
            printable(wheel.file),
            wheel.abi.name,
            python_words(wheel.abi.python),
            torch_words(wheel.abi.torch),
        ]
        for wheel in report.wheels
    )
    yield table([folded("file"), word("ABI"), word("fits"), word("by its functions")], rows)
    if len(report.wheels) > 1:
        yield ""
        yield _fold(report)


def _fold(report: CompatReport) -> str:
    count = len(report.wheels)
    if report.builds == count:
        return f"{count} wheels, all of them needed"
    return f"{count} wheels; as their symbols allow, {report.builds} would do"


def _first_symbols(report: CompatReport) -> Iterator[str]:
    for wheel in report.wheels:
        for release in wheel.releases:
            yield from (obstacle.names[0] for obstacle in release.obstacles)


def _row(release: ComparedTorch, readable: Mapping[str, str], *, tried: bool) -> Lines:
    kinds = {obstacle.kind: obstacle for obstacle in reversed(release.obstacles)}
    lines = [_why(kinds[kind], release, readable) for kind in ObstacleKind if kind in kinds]
    brings = ", ".join(release.toolkits) or "–"
    yield printable(release.torch)
    yield brings
    yield styled(*(_YES if release.loads else _NO))
    if tried:
        yield styled(*_OUTCOMES.get(_outcome(release), ("–",)))
    if release.tried and release.tried.why:
        lines.append(f"when tried: {printable(release.tried.why)}")
    yield styled("\n".join(lines))


def _outcome(release: ComparedTorch) -> Outcome:
    return release.tried.outcome if release.tried else Outcome.NOT_RUN


def _why(first: Obstacle, release: ComparedTorch, readable: Mapping[str, str]) -> str:
    """Return the first obstacle of a kind, and the number of other libraries with one."""
    member = printable(first.member.rpartition("/")[2])
    name, more = first.names[0], len(first.names) - 1
    others = sum(obstacle.kind is first.kind for obstacle in release.obstacles) - 1
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
    """Return a library with its toolkit, or the toolkit itself."""
    toolkits = ", ".join(library_toolkits([name]))
    return f"{toolkits} ({printable(name)})" if toolkits else printable(name)


def _summary(wheel: ComparedWheel) -> Iterator[str]:
    declared = wheel.requires_torch
    if declared is None:
        yield "declares no torch"
    else:
        yield f"declares torch{printable(declared)}" if declared else "declares any torch"
    yield f"loads with {_range(wheel)}"
    yield f"ABI class {abi_words(wheel.abi)}"
    if wheel.is_broken:
        yield "it loads with no torch: symbols that it needs are undefined"
    elif wheel.refuted:
        yield f"its metadata are wrong: they admit {_joined(wheel.refuted)}"
    elif wheel.unclaimed:
        yield f"its metadata could also admit {_joined(wheel.unclaimed)}"
    else:
        yield "its metadata agree with that"
    holders = _holders(wheel)
    if holders:
        yield f"held by {_joined(holders, 3)}"


def _range(wheel: ComparedWheel) -> str:
    """Return the releases that a wheel loads with, as a range if they are consecutive."""
    compared = [release.torch for release in wheel.releases]
    if not wheel.loads:
        return f"none of torch {compared[-1]} to {compared[0]}"
    if wheel.loads == compared:
        return f"all of torch {compared[-1]} to {compared[0]}"
    indexes = [compared.index(version) for version in wheel.loads]
    if len(indexes) > 1 and indexes == list(range(indexes[0], indexes[-1] + 1)):
        return f"torch {wheel.loads[-1]} to {wheel.loads[0]}"
    return f"torch {_joined(wheel.loads)} only"


def _joined(names: Sequence[str], most: int = 10) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def _holders(wheel: ComparedWheel) -> list[str]:
    """Return the libraries that keep a wheel from loading."""
    members = (obstacle.member for release in wheel.releases for obstacle in release.obstacles)
    return [printable(member) for member in dict.fromkeys(members)]
