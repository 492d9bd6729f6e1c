"""The local engine: builds a plan on this machine."""

import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta
from msgspec.structs import replace

from torchyard.engines.engine import BuildContext, clocked, expected, finished
from torchyard.engines.pending import job_graph, missing_jobs, urgency
from torchyard.engines.schedule import Schedule
from torchyard.errors import BuildError, HostError, PlanError, UsageError
from torchyard.host.decisions import decided
from torchyard.host.machine import platform_name, processors
from torchyard.host.system_view import sandbox_fault, without_sandbox
from torchyard.model.build_result import BuildResult
from torchyard.model.config import SandboxKind
from torchyard.model.event import Began, Ended, Listener, Noted
from torchyard.model.identifier import scope_path
from torchyard.model.quantity import parse_duration, show_count, show_size
from torchyard.model.recipe import Stage
from torchyard.model.values import Value
from torchyard.plan.graph import Job, Plan
from torchyard.plan.job_specs import make_job_spec
from torchyard.recipes import steps_of
from torchyard.run.permissions import demanded_sandbox
from torchyard.store.store import Store

if TYPE_CHECKING:  # slow to import
    from torchyard.engines.admission import Examination

Count = Annotated[int, Meta(ge=1)]


class LocalEngine(Value, kw_only=True):
    """Runs jobs as processes on this machine."""

    work: Annotated[
        str | None,
        Meta(
            description="Work directory of jobs, instead of .torchyard/work.",
            extra={"metavar": "DIR"},
        ),
    ] = None
    sandbox: Annotated[
        SandboxKind | None, Meta(description="Use this sandbox, not the file's.")
    ] = None
    jobs: Annotated[
        Count | None, Meta(description="Maximum number of jobs at once, at most one per slot.")
    ] = None
    slots: Annotated[
        Count | None, Meta(description="Maximum number of compilers at once, in all jobs.")
    ] = None
    time_limit: Annotated[
        str | None,
        Meta(
            description="Stop after this long, such as '5 h', and succeed; the same command "
            "continues later.",
            extra={"metavar": "TIME"},
        ),
    ] = None
    any_platform: Annotated[bool, Meta(description="Build for other platforms than this one.")] = (
        False
    )

    def build(
        self, plan: Plan, store: Store, context: BuildContext, on_event: Listener, /
    ) -> BuildResult:
        """Build all jobs of a plan that are not in the store."""
        if not self.any_platform:
            refuse_foreign(plan)
        began = time.monotonic()
        limit = self._limit()
        emit = clocked(on_event)
        graph = job_graph(plan)
        known = store.known(graph.fingerprints)
        cached = [n for n in sorted(graph.wanted) if graph.fingerprints[n] in known]
        left = missing_jobs(graph, known, graph.wanted)
        needed = [plan.jobs[number] for number in left]
        check_steps(plan, left)
        refusal = self.examine(plan, left, store, context).error if left else None
        if refusal and not context.keep_going:
            raise refusal
        slots = self.slots or processors()
        emit(
            Began(
                project=plan.label,
                store=store.url,
                jobs=len(plan),
                needed=len(left),
                stages=dict(Counter(job.stage.value for job in needed)),
                expected=expected((job.stage.value, job.settings.needs.time) for job in needed),
                cached=len(cached),
                slots=slots,
            )
        )
        for fault in refusal.diagnostics if refusal else ():
            emit(Noted(text=f"{fault.what}; {fault.hint}"))
        if text := _about_downloads(plan, needed):
            emit(Noted(text=text))
        ends: dict[int, Ended] = {}
        stopped = False
        if left:
            # Importing the runner takes longer than finding that all is done.
            from torchyard.engines.runner import Runner, RunnerOptions  # noqa: PLC0415

            decided(f"{slots} compile slots, {min(self.jobs or slots, slots)} jobs at once")
            schedule = Schedule(graph, known, left, urgency(plan, graph))
            options = RunnerOptions(
                context=context,
                work=self.work_directory(context.home),
                sandbox=self._sandbox(plan, emit),
                jobs=min(self.jobs or slots, slots),
                slots=slots,
                deadline=None if limit is None else began + limit,
            )
            ends, stopped = Runner(plan, schedule, store, options, emit).run()
        ended = list(ends.values())
        unneeded = len(plan) - len(cached) - len(needed)
        emit(finished(ended, len(cached), unneeded, time.monotonic() - began, stopped=stopped))
        packages = [graph.fingerprints[n] for n in cached if plan.jobs[n].stage is Stage.PACKAGE]
        more = "" if stopped or context.keep_going else "; --keep-going does what it can"
        onward = f"the same command continues from here{more}"
        timed = stopped and limit is not None and time.monotonic() - began >= limit
        if timed:
            self._keep_unfinished(plan, ends, store, context, emit)
        return BuildResult(plan.label, packages, ended, onward, is_out_of_time=timed)

    def examine(
        self, plan: Plan, numbers: Iterable[int], store: Store, context: BuildContext
    ) -> "Examination":
        """Inspect this machine for the jobs of a plan, as before their build."""
        from torchyard.engines.admission import PendingJobs, examine_jobs  # noqa: PLC0415 - slow
        from torchyard.run.conditions import Conditions, sandbox_here  # noqa: PLC0415 - as above

        asked = sandbox_here(plan.config.sandbox)
        conditions = Conditions(
            work=self.work_directory(context.home),
            file=context.file,
            sandbox=replace(asked, kind=self.sandbox or asked.kind),
            demanded=demanded_sandbox(),
            cache=context.cache,
        )
        jobs = [plan.jobs[number] for number in sorted(numbers)]
        return examine_jobs(PendingJobs(plan, jobs, conditions, store))

    def _keep_unfinished(
        self,
        plan: Plan,
        ends: dict[int, Ended],
        store: Store,
        context: BuildContext,
        emit: Listener,
    ) -> None:
        """Keep the progress of stopped jobs for the same command on another machine."""
        from torchyard.run.unfinished import keep_unfinished  # noqa: PLC0415 - seldom needed
        from torchyard.run.workdir import WorkDir  # noqa: PLC0415

        for number, ended in ends.items():
            job = plan.jobs[number]
            if ended.outcome != "skipped" or job.stage is Stage.PUBLISH:
                continue
            workdir = WorkDir(self.work_directory(context.home), make_job_spec(plan, job))
            try:
                finished = keep_unfinished(workdir, store)
            except (HostError, BuildError) as error:
                text = f"its progress can't be kept: {error}"
                emit(Noted(job=job.identifier, text=text))
                continue
            if finished is not None:
                text = f"kept {show_count(finished, 'finished step')} for the next run"
                emit(Noted(job=job.identifier, text=text))

    def _limit(self) -> int | None:
        """Return the seconds after which a build stops, or None."""
        try:
            return None if self.time_limit is None else parse_duration(self.time_limit)
        except ValueError as error:
            msg = f"--time-limit: {error}"
            raise UsageError(msg) from error

    def _sandbox(self, plan: Plan, emit: Listener) -> SandboxKind | None:
        """Return the sandbox for all jobs; note once if the usual one is unavailable."""
        from torchyard.run.conditions import sandbox_here  # noqa: PLC0415 - slow

        if self.sandbox is not None or sandbox_here(plan.config.sandbox).kind is not None:
            return self.sandbox
        if sandbox_fault() and demanded_sandbox() is None:
            emit(Noted(text=without_sandbox()))
            return "none"
        return None

    def work_directory(self, home: Path) -> Path:
        """Return the directory of the jobs' directories."""
        return Path(self.work).absolute() if self.work else home / "work"


def refuse_foreign(plan: Plan) -> None:
    """Refuse a plan for platforms that this machine does not build for."""
    here = platform_name()
    foreign = {job.scope[0] for job in plan.jobs if len(job.scope) > 1} - {here}
    if foreign:
        msg = f"this machine is {here}, and the plan is also for {', '.join(sorted(foreign))}"
        hint = f"choose: torchyard build {here}; or --any-platform if your steps can do that"
        raise PlanError(msg, hint=hint)


def check_steps(plan: Plan, left: set[int]) -> None:
    """Refuse a stage without steps now, not when its turn comes."""
    stages = {plan.jobs[number].stage: plan.jobs[number] for number in left}
    for job in stages.values():
        steps_of(make_job_spec(plan, job))


def _about_downloads(plan: Plan, jobs: Iterable[Job]) -> str:
    """Return the download size of compiling jobs' locked wheels; "" if unknown."""
    lock = plan.config.lock
    paths = {scope_path(job.scope) for job in jobs if job.stage is Stage.BINDINGS}
    wheels = {name for path in paths for name in lock.environments.get(path, ())}
    size = sum(lock.sizes.get(name, 0) for name in wheels)
    what = f"{show_count(len(wheels), 'wheel')} of {show_size(size)}"
    return f"builds with {what}: what uv has not cached is downloaded" if size else ""


engine = LocalEngine
