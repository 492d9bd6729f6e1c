"""The gates for a single package: it belongs to its cell, has no errors, and works.

A user may override a gate for a package, with a reason that the channel stores and shows.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from shlex import quote
from typing import NamedTuple

import msgspec
from packaging.utils import canonicalize_name

from torchyard.checks.cell import cell_names, cell_version
from torchyard.checks.rule import Severity
from torchyard.errors import Diagnostic, UsageError
from torchyard.host.demangle import MANGLED, demangled
from torchyard.index.entry import cell_of
from torchyard.model.conda_output import NONE, CondaOutput, CondaOutputs
from torchyard.model.config import SmokeDemand
from torchyard.model.suggest import did_you_mean
from torchyard.package.conda.metadata import CondaKind
from torchyard.package.versions import public_version
from torchyard.publish.evidence import Evidence
from torchyard.publish.staged import Package

_CELL, _CHECK, _SMOKE, _SANDBOX = "cell", "check", "smoke", "sandbox"
GATES = (_CELL, _CHECK, _SMOKE, _SANDBOX)
"""The gates that can be overridden: a new one is listed here, and called by `judge_all`."""


class GateOverride(NamedTuple):
    """A gate that is ignored for a file, and the reason."""

    gate: str
    file: str
    reason: str
    sha256: str = ""
    """The file's digest, once known: variants can have different files of the same name."""

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
    """A package that a gate refuses: the fault, and the fix."""

    gate: str
    package: Package
    what: str
    hint: str

    @property
    def file(self) -> str:
        return self.package.entry.file


class Ruling(NamedTuple):
    """The remaining refusals, and the overrides in use."""

    refusals: list[Diagnostic]
    used: tuple[GateOverride, ...]


def override(refused: Sequence[GateRefusal], overrides: Sequence[GateOverride]) -> Ruling:
    """Remove overridden refusals; refuse an override that matches none or several."""
    given = {(override.gate, override.file) for override in overrides}
    refusals = [_diagnostic(r) for r in refused if (r.gate, r.file) not in given]
    hit: dict[tuple[str, str], set[str]] = {}
    for refusal in refused:
        digests = hit.setdefault((refusal.gate, refusal.file), set())
        digests.add(refusal.package.entry.sha256)
    used = []
    for override in overrides:
        match [*hit.get((override.gate, override.file), ())]:
            case [sha256]:
                used.append(override._replace(sha256=sha256))
            case []:
                what = f"the gate `{override.gate}` does not refuse `{override.file}`"
                refusals.append(Diagnostic(what, None, "remove this --override"))
            case several:
                gate, file = override.gate, override.file
                what = f"the gate `{gate}` refuses {len(several)} files named `{file}`"
                hint = "an override is for one file: publish them separately"
                refusals.append(Diagnostic(what, None, hint))
    return Ruling(refusals, tuple(used))


def _diagnostic(refused: GateRefusal) -> Diagnostic:
    option = f"--override {quote(f'{refused.gate}:{refused.file}=REASON')}"
    return Diagnostic(refused.what, None, f"{refused.hint}; {option} publishes it nevertheless")


def overriding(packages: Iterable[Package], used: Iterable[GateOverride]) -> list[Package]:
    """Return the packages; their entries record overridden gates and reasons."""
    reasons: dict[str, list[tuple[str, str]]] = {}
    for override in used:
        reasons.setdefault(override.sha256, []).append((override.gate, override.reason))
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
    outputs: CondaOutputs = NONE,
) -> Iterator[GateRefusal]:
    """Yield packages that a gate refuses; `cells` and `outputs` are the plan's."""
    for package in packages:
        yield from _misplaced(package)
        is_known = package.cells or package.entry.overrides
        if not is_known and is_planned(package, cells, outputs):
            yield _unknown(package)
        yield from _unproven(package)
        if is_untried(package, evidence, smoke):
            yield _untried(package)


def is_planned(package: Package, cells: frozenset[str], outputs: CondaOutputs = NONE) -> bool:
    """Return whether a package has the name and version of a cell of the plan."""
    given = tuple((kind, output.name, output.version) for kind, output in outputs.items())
    return (package.name, public_version(package.entry.version)) in _releases(cells, given)


@cache
def _releases(
    cells: frozenset[str], given: tuple[tuple[str, str | None, str | None], ...]
) -> frozenset[tuple[str, str]]:
    """Return possible names (normalised or not) and versions of cells' packages.

    `given` are names and versions of the file, by kinds.
    """
    outputs = {kind: CondaOutput(name=name, version=version) for kind, name, version in given}
    return frozenset(
        (spelt, public_version(cell_version(cell, outputs)))
        for cell in cells
        for name in cell_names(cell, outputs)
        for spelt in (name, canonicalize_name(name))
    )


def _misplaced(package: Package) -> Iterator[GateRefusal]:
    """Refuse a package that does not belong to the cell of its job."""
    file = package.entry.file
    for mismatch in package.mismatches:
        what = f"`{file}` is not the package that its job should make: {mismatch}"
        yield GateRefusal(_CELL, package, what, "correct the steps of stage `package`")


def _unknown(package: Package) -> GateRefusal:
    """Refuse a package of the plan's project without a known job.

    The spec in a package is no proof: any package can contain any spec.
    """
    file = package.entry.file
    what = f"the plan's cell of `{file}` is unknown"
    hint = "publish packages of `torchyard build`, with the store that has them"
    return GateRefusal(_CELL, package, what, hint)


def _unproven(package: Package) -> Iterator[GateRefusal]:
    """Refuse a package with errors in `check`."""
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
    """Yield packages made, even partly, without a sandbox or by unknown jobs."""
    for package in packages:
        if evidence.confined.isdisjoint({package.entry.cell, *package.cells}):
            what = f"`{package.entry.file}` was not made in a sandbox from a clean start"
            hint = "the channel requires this: build a commit on a machine where bubblewrap works"
            yield GateRefusal(_SANDBOX, package, what, hint)


def is_untried(package: Package, evidence: Evidence, smoke: SmokeDemand) -> bool:
    """Return whether a package lacks a required smoke test.

    A conda metapackage has no files to test.
    """
    cell = cell_of(package.entry)
    if smoke == "off" or (cell and cell.package == CondaKind.META):
        return False
    if smoke == "planned":
        return not evidence.finished.issuperset(package.cells)
    cells = {package.entry.cell, *package.cells}
    return evidence.working.isdisjoint((name, package.entry.sha256) for name in cells)


def _untried(package: Package) -> GateRefusal:
    file = package.entry.file
    run = f"build smoke:{package.cells[0]}" if package.cells else f"smoke {package.path}"
    what = f"`{file}` has not passed its smoke tests"
    return GateRefusal(_SMOKE, package, what, f"`torchyard {run}` runs them")
