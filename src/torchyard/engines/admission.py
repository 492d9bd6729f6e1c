"""Whether this machine can run the jobs of a build: for `doctor`, and before the first job."""

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.compute.registry import compute_platforms
from torchyard.compute.toolkit_check import TOOLKIT_CHECK
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
from torchyard.errors import Diagnostic, HostError, PlanError, TorchyardError
from torchyard.host.entry_points import require_module
from torchyard.host.machine import platform_name
from torchyard.host.system_view import LOST, sandbox_cure, sandbox_fault
from torchyard.model.config import SandboxKind, own_release
from torchyard.model.event import AnyEvent
from torchyard.model.identifier import ANY_PYTHON
from torchyard.model.job_spec import Task, short_name
from torchyard.model.recipe import Stage
from torchyard.model.severity import Severity
from torchyard.model.toolchain import Toolchain
from torchyard.model.values import Reported
from torchyard.package.wheel.metadata import NAME as WHEEL
from torchyard.plan.graph import Job, Plan
from torchyard.plan.job_specs import make_job_spec, make_task
from torchyard.publish.channel.channel import Channel
from torchyard.recipes import compiles_by_recipe, is_tried_by_us
from torchyard.run.conditions import Conditions, choose_sandbox
from torchyard.run.sandbox import is_traced
from torchyard.store.store import Store
from torchyard.toolchain.root import ask_in_root
from torchyard.toolchain.root_image import find_root
from torchyard.toolchain.variables import SYSTEM_PATH

_ORDER = list(Severity)
_BROUGHT = "ninja"
"""The program that torchyard ships for every job."""
_LATER = "a job would fail for it, maybe after hours"


class Examination(Reported, kw_only=True):
    """The findings of checks on a machine, for one build; the worst first."""

    title: str
    platform: str
    findings: list[MachineFinding]
    seen: list[MachineSighting]

    @property
    def errors(self) -> list[MachineFinding]:
        return [finding for finding in self.findings if finding.severity is Severity.ERROR]

    @property
    def error(self) -> TorchyardError | None:
        """The refusal of the build, with a fix for each error."""
        faults = [Diagnostic(error.what, None, error.cure or error.why) for error in self.errors]
        return HostError.of(faults) if faults else None


class PendingJobs(NamedTuple):
    """The jobs of a plan without results, and how they would run here."""

    plan: Plan
    jobs: list[Job]
    conditions: Conditions
    store: Store | None = None
    """None if other machines run the jobs."""

    @property
    def base(self) -> Path:
        """The directory of the file."""
        return Path(self.conditions.file).parent

    def tasks(self, *stages: Stage) -> list[Task]:
        """Return the pending jobs of these stages."""
        return [make_task(self.plan, job) for job in self.jobs if job.stage in stages]


def all_machine_checks() -> dict[str, MachineCheck]:
    """Return all checks: of the machine itself, and of each compute platform."""
    platforms = compute_platforms(plug_ins=True)
    of_platforms = (check for platform in platforms for check in platform.machine_checks())
    return {**MACHINE_CHECKS, **{check.id: check for check in (TOOLKIT_CHECK, *of_platforms)}}


def examine(bench: Bench, checks: Iterable[MachineCheck]) -> Examination:
    """Run checks; a check that fails to run is a finding."""
    findings, seen = [], []
    for check in checks:
        if check.by_hand and not bench.by_hand:
            continue
        for observed in _answer(check, bench):
            if isinstance(observed, Seen):
                seen.append(MachineSighting(check=check.id, what=observed.what))
            else:
                findings.append(_finding(check, observed))
    findings.sort(key=lambda finding: _ORDER.index(finding.severity))
    return Examination(
        title=bench.demand.title, platform=platform_name(), findings=findings, seen=seen
    )


def _answer(check: MachineCheck, bench: Bench) -> list[Seen | Trouble]:
    try:
        return list(dict.fromkeys(check.inspect(bench)))
    except (HostError, OSError) as error:
        why = "the check met a state that it does not expect"
        return [Trouble(f"the check can't run: {error}", why, "", Severity.WARNING)]


def _finding(check: MachineCheck, trouble: Trouble) -> MachineFinding:
    return MachineFinding(
        check=check.id,
        severity=trouble.severity,
        what=trouble.what,
        why=trouble.why,
        cure=trouble.cure,
        fixable=trouble.fixable,
        system=machine_table().changes_system(trouble.cure),
    )


def examine_jobs(pending: PendingJobs) -> Examination:
    """Inspect this machine for jobs, and their root if they have one."""
    demand = _demand(pending)
    if pending.store and not pending.jobs:
        done = MachineSighting(check="store", what=f"all results are in {pending.store.url}")
        return Examination(title=demand.title, platform=platform_name(), findings=[], seen=[done])
    checks = [*all_machine_checks().values(), *_job_checks(pending).values()]
    bench, toolchain = Bench(demand, plain_environment()), demand.toolchain
    if toolchain is None or not toolchain.has_own_system:
        return examine(bench, checks)
    outside = examine(bench, [check for check in checks if check.outside])
    if toolchain.root is None or not (demand.compiles or demand.pythons):
        return outside
    root = find_root(toolchain.root, pending.base, pending.conditions.work)
    answer = ask_in_root(root, ["doctor", msgspec.json.encode(demand).decode()])
    inside = msgspec.json.decode(answer, type=Examination)
    outside.findings.extend(inside.findings)
    outside.findings.sort(key=lambda finding: _ORDER.index(finding.severity))
    outside.seen.extend(inside.seen)
    title = f"{demand.title}, in the root `{toolchain.root}`"
    return msgspec.structs.replace(outside, title=title)


def refuse_project(plan: Plan, numbers: Iterable[int], file: str) -> None:
    """Refuse jobs that no machine can run, because of the tree, the source or the file's channels.

    Raises:
        PlanError: The jobs would be refused on every machine.
    """
    conditions = Conditions(work=Path(file).parent, file=file)
    pending = PendingJobs(plan, [plan.jobs[number] for number in sorted(numbers)], conditions)
    checks = {**MACHINE_CHECKS, **_job_checks(pending)}
    bench = Bench(_demand(pending), plain_environment())
    if error := examine(bench, [checks[name] for name in OF_PROJECT]).error:
        raise PlanError.of(error.diagnostics)


def plain_environment() -> dict[str, str]:
    """Return a job's variables that affect compilers, without those of the caller.

    TMPDIR is the only exception: `/tmp` may not be writable.
    """
    plain = {"PATH": SYSTEM_PATH, "HOME": "/nonexistent", "LANG": "C.UTF-8"}
    return plain | {name: os.environ[name] for name in ("TMPDIR",) if name in os.environ}


def _demand(pending: PendingJobs) -> BuildDemand:
    """Return the demand of jobs on a machine."""
    config, jobs = pending.plan.config, pending.jobs
    project, tables, source = config.project, config.tables, config.source
    is_torch = project.name == project.recipe.project
    compiling = list(filter(compiles_by_recipe, pending.tasks(Stage.CORE, Stage.BINDINGS)))
    blocks = _compiled_blocks(pending, {task.id for task in compiling})
    computes = tuple(dict.fromkeys(task.facts["compute"] for task in blocks))
    pins = [pin.partition(" ")[0] for task in blocks for pin in task.words("requires")]
    reads_source = any(job.stage is Stage.SOURCE for job in jobs)
    made = [job.path for job in jobs if job.stage is Stage.PACKAGE]
    what = f"{len(made)} packages" if len(made) > 1 else "".join(made) or "no package"
    return BuildDemand(
        title=f"{project.label}: {what}, {len(jobs)} of {len(pending.plan)} jobs to do",
        release=own_release(project.version) if is_torch else "",
        is_torch=is_torch,
        computes=computes,
        archs={task.facts["compute"]: tuple(task.words("archs")) for task in blocks},
        newest={c: dict(tables.compute[c].compilers) for c in computes if c in tables.compute},
        blas=tuple(dict.fromkeys(b for t in blocks if (b := t.facts["variant"]) in tables.blas)),
        pythons=_pythons(pending, compiling),
        pins=dict(pin.split("==", 1) for pin in pins if "==" in pin),
        compiles=bool(compiling),
        settings={c: _settings(t for t in blocks if t.facts["compute"] == c) for c in computes},
        version=project.version,
        toolchain=config.toolchain or Toolchain(),
        memory=max((job.settings.needs.memory or 0 for job in jobs), default=0),
        disk=_disk(pending),
        source=str(pending.base / source.path) if source.path and reads_source else "",
        left_out=source.leave_out,
        is_changed=bool(config.patches.texts or config.build.prepare),
        work=str(pending.conditions.work),
        store=str(pending.store.objects.folder or "") if pending.store else "",
    )


def _compiled_blocks(pending: PendingJobs, compiling: Collection[str]) -> list[Task]:
    """Return the tasks whose blocks jobs compile: a core, also for bindings, or an extension."""
    jobs = (job for job in pending.jobs if job.identifier in compiling)
    found = (make_job_spec(pending.plan, job).compiled for job in jobs)
    return list({task.fingerprint: task for task in found}.values())


def _settings(blocks: Iterable[Task]) -> tuple[dict[str, str], ...]:
    """Return the blocks' text settings, with their variables and CMake entries."""
    return tuple(
        {name: text for name, text in task.settings.items() if isinstance(text, str)}
        | task.table("env")
        | task.table("cmake")
        for task in blocks
    )


def _pythons(pending: PendingJobs, compiling: Iterable[Task]) -> tuple[str, ...]:
    """Return the Pythons that jobs compile for or test wheels with."""
    kinds = pending.plan.config.tables.packages
    tried = filter(is_tried_by_us, pending.tasks(Stage.SMOKE))
    wheels = [task for task in tried if kinds[task.facts["kind"]].format == WHEEL]
    bound = [task for task in compiling if task.stage is Stage.BINDINGS]
    names = dict.fromkeys(task.facts["python"] for task in (*bound, *wheels))
    return tuple(name for name in names if name != ANY_PYTHON)


def _disk(pending: PendingJobs) -> dict[str, int]:
    """Return the disk that each stage's jobs need, less what interrupted jobs already use."""
    needed: dict[str, int] = {}
    for job in pending.jobs:
        size = job.settings.needs.disk or 0
        begun = pending.conditions.work / short_name(job.stage, job.fingerprint)
        if size > needed.get(job.stage, 0) and not begun.is_dir():
            needed[job.stage.value] = size
    return needed


# ----------------------------------------------------------------------- checks of jobs


def job_sandbox(pending: PendingJobs, bench: Bench) -> Iterator[Seen | Trouble]:
    """Bubblewrap can make the sandboxes of jobs; a trial sandbox shows it."""
    noted: list[AnyEvent] = []
    kinds: dict[SandboxKind, None] = {}
    for job in {job.stage: job for job in pending.jobs}.values():
        spec = make_job_spec(pending.plan, job)
        try:
            kinds[choose_sandbox(spec, pending.conditions, noted.append)] = None
        except TorchyardError as error:
            yield Trouble(str(error), _LATER, _cure(error.diagnostics[0].hint or "", bench))
            return
    if noted:
        what = f"jobs run without a sandbox, which does not work here: {sandbox_fault()}"
        yield Trouble(what, LOST, _cure(sandbox_cure(), bench), Severity.WARNING)
    shown = (f"{kind} (traced)" if is_traced(kind) else kind for kind in kinds)
    yield Seen(f"sandboxes of jobs: {', '.join(shown)}")


def _cure(hint: str, bench: Bench) -> str:
    return (bench.install("bubblewrap") if "bubblewrap" in hint else "") or hint


def job_modules(pending: PendingJobs, _bench: Bench) -> Iterator[Seen | Trouble]:
    """The Python modules that write and install conda packages are installed."""
    tables = pending.plan.config.tables
    tasks = pending.tasks(Stage.PACKAGE, Stage.SMOKE)
    kinds = {(t.stage, t.facts["kind"]) for t in tasks if "steps" not in t.settings}
    for stage, kind in sorted(kinds):
        form = tables.packages[kind].format
        if module := tables.formats[form].modules.get(stage):
            what = f"{form} packages" if stage is Stage.PACKAGE else f"tests of {form} packages"
            yield from _refusal(partial(require_module, module, what))


def job_channels(pending: PendingJobs, _bench: Bench) -> Iterator[Seen | Trouble]:
    """Channel directories that smoke tests install from exist."""
    tasks = [task for task in pending.tasks(Stage.SMOKE) if is_tried_by_us(task)]
    for url in sorted({url for task in tasks for url in task.words("channels")}):
        folder = pending.base / url.removeprefix("file://")
        if "://" not in str(folder) and not any(folder.glob("*/repodata.json*")):
            what = f"there is no channel `{url}`, which `channels` of [smoke] names"
            cure = f"make it, or build without tests: --skip '{Stage.SMOKE}:*'"
            yield Trouble(what, "smoke tests install packages from it", cure)


def job_publication(pending: PendingJobs, _bench: Bench) -> Iterator[Seen | Trouble]:
    """Channels to publish to can be reached with the available credentials."""
    for task in pending.tasks(Stage.PUBLISH):
        url = task.text("url")
        if "steps" not in task.settings:
            address = url if "://" in url else str(pending.base / url)
            yield from _refusal(partial(Channel.is_at, address))


def job_source(pending: PendingJobs, bench: Bench) -> Iterator[Seen | Trouble]:
    """The source can be fetched: git and a commit, or an existing archive."""
    for task in pending.tasks(Stage.SOURCE):
        source = task.source
        if source is None or "steps" in task.settings:
            continue
        uses_git = source.git or task.words("series")
        if uses_git and pending.store and shutil.which("git") is None:
            yield Trouble("there is no `git`", _LATER, bench.install("git"))
        if source.git and not source.commit:
            what = f"`{source.rev}` of {source.git} can be another commit tomorrow"
            hint = f"write `commit` beside it, as this prints it: git ls-remote {source.git}"
            yield Trouble(what, f"{hint} {source.rev}")
        if source.archive and source.file and not (pending.base / source.archive).is_file():
            what = f"there is no archive `{source.archive}`"
            yield Trouble(what, "[source] archive is relative to the file that names it")


def job_programs(pending: PendingJobs, bench: Bench) -> Iterator[Seen | Trouble]:
    """Programs in steps of the file are on the PATH of jobs; a root has its own."""
    toolchain = bench.demand.toolchain
    if toolchain and toolchain.has_own_system:
        return
    steps = pending.plan.config.steps
    for task in pending.tasks(*steps):
        for step in steps[task.stage]:
            name, own_path = step.run[0], {*step.env, *task.table("env"), *task.words("pass_env")}
            if "/" in name or "{" in name or "PATH" in own_path:
                continue
            if name != _BROUGHT and shutil.which(name, path=SYSTEM_PATH) is None:
                what = f"`{name}`, which a step of {task.stage} runs, is not on the PATH of jobs"
                cure = f"correct `run` in [[steps.{task.stage}]], or install it below {SYSTEM_PATH}"
                yield Trouble(what, f"the step `{step.title}` would fail", cure)


def _refusal(attempt: Callable[[], object]) -> Iterator[Trouble]:
    """Yield the error of a job in advance, if a trial fails."""
    try:
        attempt()
    except TorchyardError as error:
        yield Trouble(str(error), _LATER, error.diagnostics[0].hint or "")


_JobInspect = Callable[[PendingJobs, Bench], Iterator[Seen | Trouble]]

JOB_CHECKS: dict[str, _JobInspect] = {
    "sandbox": job_sandbox,
    "python-modules": job_modules,
    "smoke-channels": job_channels,
    "publication": job_publication,
    "source": job_source,
    "programs": job_programs,
}
"""Checks for jobs, not for builds by hand."""


OF_PROJECT = ("tree-version", "submodules", "smoke-channels", "source")
"""Checks of the project: no machine can build what they refuse."""


def _job_checks(pending: PendingJobs) -> dict[str, MachineCheck]:
    return {
        name: MachineCheck(name, inspect.__doc__ or "", partial(inspect, pending), outside=True)
        for name, inspect in JOB_CHECKS.items()
    }


def examine_in_root(request: str) -> Examination:
    """Run the part of `examine_jobs` inside the root."""
    demand = msgspec.json.decode(request, type=BuildDemand)
    demand = msgspec.structs.replace(demand, source="")  # not visible there
    bench = Bench(demand, plain_environment())
    return examine(bench, [check for check in all_machine_checks().values() if not check.outside])
