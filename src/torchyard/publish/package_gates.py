"""The gates for one package: it is that of its cell, it has no errors, and it works.

A person may override one gate for one package, with a reason that the channel keeps and shows.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from shlex import quote
from typing import NamedTuple

import msgspec
from packaging.utils import canonicalize_name

from torchyard.checks.cell import cell_names
from torchyard.checks.rule import Severity
from torchyard.errors import Diagnostic, UsageError
from torchyard.host.demangle import MANGLED, demangled
from torchyard.index.entry import cell_of
from torchyard.model.config import SmokeDemand
from torchyard.model.suggest import did_you_mean
from torchyard.package.conda.metadata import CondaKind
from torchyard.package.versions import public_version
from torchyard.publish.evidence import Evidence
from torchyard.publish.staged import Package

_CELL, _CHECK, _SMOKE, _SANDBOX = "cell", "check", "smoke", "sandbox"
GATES = (_CELL, _CHECK, _SMOKE, _SANDBOX)
"""The gates that can be overridden: a new one is named here, and called by `judge_all`."""


class GateOverride(NamedTuple):
    """A gate that does not count for one file, and why."""

    gate: str
    file: str
    reason: str
    sha256: str = ""
    """The file's, once it is known: variants can have other files of the same name."""

    def __str__(self) -> str:
        return f"{self.gate} of {self.file}: {self.reason}"


def parse_override(text: str) -> GateOverride:
    """Return the override `GATE:FILE=REASON`."""
    gate, _, rest = text.partition(":")
    file, _, reason = rest.partition("=")
    if gate not in GATES:
        msg = f"`--override {text}` names no gate"
        raise UsageError(msg, hint=f"write GATE:FILE=REASON; {did_you_mean(gate, GATES)}")
    if not file or not reason.strip():
        msg = f"`--override {text}` has no {'reason' if file else 'file'}"
        raise UsageError(msg, hint="write GATE:FILE=REASON; the channel shows the reason")
    return GateOverride(gate, file, reason.strip())


class GateRefusal(NamedTuple):
    """A package that a gate refuses: what is wrong, and what to do about it."""

    gate: str
    package: Package
    what: str
    hint: str

    @property
    def file(self) -> str:
        return self.package.entry.file


class Ruling(NamedTuple):
    """What remains of refusals, and the overrides that were needed."""

    refusals: list[Diagnostic]
    used: tuple[GateOverride, ...]


def override(refused: Sequence[GateRefusal], overrides: Sequence[GateOverride]) -> Ruling:
    """Take out the refusals that are overridden; an override of none, or of two, is refused."""
    given = {(one.gate, one.file) for one in overrides}
    refusals = [_diagnostic(one) for one in refused if (one.gate, one.file) not in given]
    hit: dict[tuple[str, str], set[str]] = {}
    for refusal in refused:
        digests = hit.setdefault((refusal.gate, refusal.file), set())
        digests.add(refusal.package.entry.sha256)
    used = []
    for one in overrides:
        match [*hit.get((one.gate, one.file), ())]:
            case [sha256]:
                used.append(one._replace(sha256=sha256))
            case []:
                what = f"the gate `{one.gate}` does not refuse `{one.file}`"
                refusals.append(Diagnostic(what, None, "leave this --override out"))
            case several:
                what = f"the gate `{one.gate}` refuses {len(several)} files called `{one.file}`"
                hint = "an override is for one: publish them one at a time"
                refusals.append(Diagnostic(what, None, hint))
    return Ruling(refusals, tuple(used))


def _diagnostic(refused: GateRefusal) -> Diagnostic:
    option = f"--override {quote(f'{refused.gate}:{refused.file}=REASON')}"
    return Diagnostic(refused.what, None, f"{refused.hint}; {option} publishes it nevertheless")


def overriding(packages: Iterable[Package], used: Iterable[GateOverride]) -> list[Package]:
    """The packages, whose entries record which gates were overridden for them, and why."""
    reasons: dict[str, list[tuple[str, str]]] = {}
    for one in used:
        reasons.setdefault(one.sha256, []).append((one.gate, one.reason))
    return [
        package._replace(
            entry=msgspec.structs.replace(package.entry, overrides=tuple(reasons[sha256]))
        )
        if (sha256 := package.entry.sha256) in reasons
        else package
        for package in packages
    ]


def refused_packages(
    packages: Iterable[Package],
    cells: frozenset[str],
    evidence: Evidence,
    smoke: SmokeDemand = "planned",
) -> Iterator[GateRefusal]:
    """Packages that a gate refuses; `cells` are those of the plan."""
    for package in packages:
        yield from _misplaced(package)
        if not package.cells and is_planned(package, cells) and not package.entry.overrides:
            yield _unknown(package)
        yield from _unproven(package)
        if is_untried(package, evidence, smoke):
            yield _untried(package)


def is_planned(package: Package, cells: frozenset[str]) -> bool:
    """Return whether a package has the name and version of some cell of a plan."""
    return (package.name, public_version(package.entry.version)) in _releases(cells)


@cache
def _releases(cells: frozenset[str]) -> frozenset[tuple[str, str]]:
    """The names, normalised and not, and versions that packages of cells may have."""
    return frozenset(
        (spelt, public_version(cell.partition("/")[0].rpartition("-")[2]))
        for cell in cells
        for name in cell_names(cell)
        for spelt in (name, canonicalize_name(name))
    )


def _misplaced(package: Package) -> Iterator[GateRefusal]:
    """Refuse a package that is not the one of the cell whose job delivered it."""
    file = package.entry.file
    for mismatch in package.mismatches:
        what = f"`{file}` is not the package that its job was to make: {mismatch}"
        yield GateRefusal(_CELL, package, what, "correct the steps of stage `package`")


def _unknown(package: Package) -> GateRefusal:
    """Refuse a package of the plan's project that no job is known to have made.

    The spec that it carries does not count: every package can carry any.
    """
    file = package.entry.file
    what = f"it is not known which cell of the plan `{file}` belongs to"
    hint = "publish what `torchyard build` made, with the store that has it"
    return GateRefusal(_CELL, package, what, hint)


def _unproven(package: Package) -> Iterator[GateRefusal]:
    """Refuse a package in which `check` finds errors."""
    errors = [found for found in package.findings if found.severity is Severity.ERROR]
    if errors:
        file, first = package.entry.file, errors[0]
        more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        readable = demangled(MANGLED.findall(first.what))
        message = MANGLED.sub(lambda name: readable.get(name[0], name[0]), first.what)
        where = f"{first.member}: " if first.member else ""
        what = f"`{file}` has errors: {where}{message} [{first.rule}]{more}"
        hint = f"`torchyard check {package.path}` lists all; a policy can allow known findings"
        yield GateRefusal(_CHECK, package, what, hint)


def unconfined(packages: Iterable[Package], evidence: Evidence) -> Iterator[GateRefusal]:
    """Yield packages of which something was made without a sandbox, or by jobs that are unknown."""
    for package in packages:
        if evidence.confined.isdisjoint({package.entry.cell, *package.cells}):
            what = f"`{package.entry.file}` was not made in a sandbox, from nothing"
            hint = "the channel requires it: build a commit, where bubblewrap works"
            yield GateRefusal(_SANDBOX, package, what, hint)


def is_untried(package: Package, evidence: Evidence, smoke: SmokeDemand) -> bool:
    """Return whether a package lacks a smoke test that is demanded of it.

    A conda metapackage has no files, and so nothing that could be tried.
    """
    cell = cell_of(package.entry)
    if smoke == "off" or (cell and cell.package == CondaKind.META):
        return False
    if smoke == "planned":
        return not evidence.finished.issuperset(package.cells)
    cells = {package.entry.cell, *package.cells}
    return evidence.working.isdisjoint((one, package.entry.sha256) for one in cells)


def _untried(package: Package) -> GateRefusal:
    file = package.entry.file
    run = f"build smoke:{package.cells[0]}" if package.cells else f"smoke {package.path}"
    what = f"`{file}` has not passed its smoke tests"
    return GateRefusal(_SMOKE, package, what, f"`torchyard {run}` runs them")
