"""Inspect this machine for a build: cells of a file, or a tree that is built by hand."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from torchyard.compute.registry import compute_platforms
from torchyard.doctor.bench import Bench, BuildDemand
from torchyard.doctor.check import (
    MachineCheck,
    MachineFinding,
    MachineSighting,
    Seen,
    Trouble,
)
from torchyard.doctor.registry import MACHINE_CHECKS
from torchyard.doctor.table import machine_table
from torchyard.doctor.tree import read_tree
from torchyard.errors import HostError, SelectionError
from torchyard.host.machine import platform_name
from torchyard.host.process import stream
from torchyard.model.config import Config, own_release
from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.severity import Severity
from torchyard.model.tables import Tables
from torchyard.model.toolchain import Toolchain
from torchyard.model.values import Reported
from torchyard.plan.build import make_plan
from torchyard.plan.expand import expand
from torchyard.plan.graph import Plan
from torchyard.plan.select import PlanSelection, ReadSelection
from torchyard.toolchain.root import ask_in_root
from torchyard.toolchain.root_image import find_root
from torchyard.toolchain.variables import SYSTEM_PATH

_ORDER = list(Severity)


class Examination(Reported, kw_only=True):
    """What the checks found on a machine, for one build; the worst first."""

    title: str
    platform: str
    findings: list[MachineFinding]
    seen: list[MachineSighting]

    @property
    def errors(self) -> list[MachineFinding]:
        return [one for one in self.findings if one.severity is Severity.ERROR]


def all_machine_checks() -> dict[str, MachineCheck]:
    """Return every check: of the machine itself, and of each compute platform."""
    platforms = compute_platforms(plug_ins=True)
    of_platforms = (check for platform in platforms for check in platform.machine_checks())
    return {**MACHINE_CHECKS, **{check.id: check for check in of_platforms}}


def examine(bench: Bench, checks: Iterable[MachineCheck]) -> Examination:
    """Run checks; a check that fails itself is a finding."""
    findings, seen = [], []
    for check in checks:
        if check.by_hand and not bench.by_hand:
            continue
        answer = _answer(check, bench)
        seen += [MachineSighting(check=check.id, what=one.what) for one in answer if is_seen(one)]
        findings += [_finding(check, one) for one in answer if isinstance(one, Trouble)]
    findings.sort(key=lambda one: _ORDER.index(one.severity))
    return Examination(
        title=bench.demand.title, platform=platform_name(), findings=findings, seen=seen
    )


def is_seen(one: Seen | Trouble) -> bool:
    return isinstance(one, Seen)


def _answer(check: MachineCheck, bench: Bench) -> list[Seen | Trouble]:
    try:
        return list(check.inspect(bench))
    except (HostError, OSError) as error:
        why = "what it looks at is in a state that it does not expect"
        return [Trouble(f"this can't be inspected: {error}", why, "", Severity.WARNING)]


def _finding(check: MachineCheck, one: Trouble) -> MachineFinding:
    return MachineFinding(
        check=check.id,
        severity=one.severity,
        what=one.what,
        why=one.why,
        cure=one.cure,
        fixable=one.fixable,
        system=machine_table().changes_system(one.cure),
    )


def examine_source(
    folder: str, tables: Tables, *, compute: str = "", blas: str = ""
) -> Examination:
    """Inspect the shell that this runs in, for a build by hand of the tree in a directory."""
    place = Path(folder).absolute()
    if not place.is_dir():
        msg = f"there is no directory `{folder}`"
        raise HostError(msg, hint="name the directory of a checkout")
    facts = read_tree(place)
    what = f"torch {facts.release}" if facts.is_torch else place.name
    platform = tables.platforms.get(platform_name())
    demand = BuildDemand(
        title=f"{what} in {place}, built by hand",
        release=facts.release,
        is_torch=facts.is_torch,
        computes=(compute,) if compute else (),
        blas=(blas,) if blas else (),
        blas_names=platform.blas if platform else (),
        source=str(place),
        work=str(place),
    )
    return examine(Bench(demand, os.environ), all_machine_checks().values())


def examine_cells(config: Config, words: Sequence[str], *, base: Path, work: Path) -> Examination:
    """Inspect this machine for the jobs of some cells; with a root, the root as well."""
    cells = _cells(config, words)
    plan = make_plan(config, PlanSelection(select=tuple(cell.path for cell in cells)))
    demand = _demand(config, cells, plan, base=base, work=work)
    bench = Bench(demand, plain_environment())
    checks = list(all_machine_checks().values())
    if config.toolchain is None:  # the file's own steps bring what compiles
        return examine(bench, [check for check in checks if check.outside])
    if config.toolchain.root is None:
        return examine(bench, checks)
    outside = examine(bench, [check for check in checks if check.outside])
    root = find_root(config.toolchain.root, base, work)
    said = ask_in_root(root, ["doctor", msgspec.json.encode(demand).decode()])
    inside = msgspec.json.decode(said, type=Examination)
    findings = sorted(
        outside.findings + inside.findings, key=lambda one: _ORDER.index(one.severity)
    )
    return Examination(
        title=f"{demand.title}, in the root `{config.toolchain.root}`",
        platform=outside.platform,
        findings=findings,
        seen=outside.seen + inside.seen,
    )


def examine_in_root(request: str) -> Examination:
    """Do the part of `examine_cells` that is done in the root."""
    demand = msgspec.json.decode(request, type=BuildDemand)
    demand = msgspec.structs.replace(demand, source="")  # not visible there
    bench = Bench(demand, plain_environment())
    return examine(bench, [one for one in all_machine_checks().values() if not one.outside])


def plain_environment() -> dict[str, str]:
    """Return the variables of a job that compilers depend on: none of the caller's."""
    return {"PATH": SYSTEM_PATH, "HOME": "/nonexistent", "LANG": "C.UTF-8"}


def _cells(config: Config, words: Sequence[str]) -> list[Cell]:
    """Return the cells of this machine's platform that a selector names."""
    named = ReadSelection(expand(config), PlanSelection(select=tuple(words))).cells()
    here = [cell for cell in named if cell.platform == platform_name()]
    if not here:
        others = ", ".join(dict.fromkeys(cell.platform for cell in named))
        what = " ".join(words) or "the file"
        msg = f"no cell of {what} is built on {platform_name()}: {others} only"
        raise SelectionError(msg, hint="run it on a machine of that platform")
    return here


def _demand(
    config: Config, cells: Sequence[Cell], plan: Plan, *, base: Path, work: Path
) -> BuildDemand:
    """Return what the jobs of some cells ask for."""
    project, tables = config.project, config.tables
    is_torch = project.name == project.recipe.project
    computes = tuple(dict.fromkeys(cell.compute for cell in cells))
    compiling = [job for job in plan.jobs if job.stage is project.recipe.compiling]
    is_blas = not project.recipe.is_extension
    variants = dict.fromkeys(cell.variant for cell in cells if is_blas)
    needs = {job.stage: job.settings.needs for job in plan.jobs}
    pins = [pin for job in compiling for pin in _words(job.settings.values.get("requires"))]
    source = config.source.path
    count = f"{len(cells)} cells" if len(cells) > 1 else cells[0].path
    return BuildDemand(
        title=f"{project.label}: {count}",
        release=own_release(project.version) if is_torch else "",
        is_torch=is_torch,
        computes=computes,
        archs={job.scope[1]: _words(job.settings.values.get("archs")) for job in compiling},
        newest={
            name: dict(tables.compute[name].compilers)
            for name in computes
            if name in tables.compute
        },
        blas=tuple(name for name in variants if name in tables.blas),
        pythons=tuple(dict.fromkeys(c.python for c in cells if c.python != ANY_PYTHON)),
        pins=dict(pin.partition(" ")[0].split("==", 1) for pin in pins if "==" in pin),
        toolchain=config.toolchain or Toolchain(),
        memory=max((one.memory or 0 for one in needs.values()), default=0),
        disk={stage.value: one.disk for stage, one in needs.items() if one.disk},
        source=str(base / source) if source else "",
        work=str(work),
    )


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def mend(examination: Examination, on_line: Callable[[str], None]) -> int:
    """Run the cures that are safe and local, each once; return how many succeeded."""
    cures = dict.fromkeys(one.cure for one in examination.findings if one.fixable and one.cure)
    mended = 0
    for cure in cures:
        on_line(f"+ {cure}")
        mended += stream(["bash", "-c", cure], on_line) == 0
    return mended
