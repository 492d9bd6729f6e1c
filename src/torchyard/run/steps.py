"""Run the steps of a job in order, continuing after the last finished one."""

import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.config.credentials import credentials
from torchyard.errors import BuildError, HostError
from torchyard.host.child import Child, Exit, Sample
from torchyard.host.jobserver import is_old_make, makeflags
from torchyard.host.process_id import process_birth
from torchyard.host.process_tree import family_written
from torchyard.host.untrusted_tree import UntrustedTree
from torchyard.model.event import Listener, Progress, Stepped, Stepping
from torchyard.model.recipe import Stage
from torchyard.model.result import Usage
from torchyard.model.step import INPUTS, Step
from torchyard.model.unit_usage import UnitUsage
from torchyard.run.environment import job_environment
from torchyard.run.log import Log
from torchyard.run.reading import ReadWatch
from torchyard.run.sandbox import (
    Enclosure,
    enclose,
    slots_path,
    spec_path,
    tools_path,
    watched_path,
    work_path,
)
from torchyard.run.unit_meter import UnitMeter, leave_units
from torchyard.run.work_left import NinjaProgress, WorkLeft
from torchyard.run.workdir import EQUIPMENT, OUT, JobState, WorkDir
from torchyard.toolchain.root import own_python
from torchyard.toolchain.variables import SYSTEM_PATH, compose

_PAUSE = 5.0
"""Seconds between two records of a running step's usage."""


class StepTries:
    """The tries of a step, recorded in its job's state, which survives a killed run."""

    def __init__(self, workdir: WorkDir, state: JobState, step: str) -> None:
        self._place = workdir
        self._state = self._running = state
        self._step = step
        self._noted = 0.0

    def usage(self, used: Sample, disk: int = 0) -> Usage:
        """Return the usage of this try and all earlier ones."""
        now = Usage(
            step=self._step,
            seconds=round(used.seconds, 3),
            cpu=round(used.cpu, 3),
            memory=used.memory,
            disk=disk,
        )
        return now.after(self._state.unfinished)

    def begin(self, group: int, born: str) -> None:
        """Record a new try and its process group."""
        self._running = msgspec.structs.replace(self._state, group=group, born=born)
        self._save(Sample(0, 0, 0))

    def note(self, used: Sample, *, last: bool = False) -> None:
        """Record this try's usage so far, unless just recorded."""
        if last or time.monotonic() - self._noted > _PAUSE:
            self._noted = time.monotonic()
            self._save(used)

    def _save(self, used: Sample) -> None:
        self._place.save(msgspec.structs.replace(self._running, unfinished=self.usage(used)))


_OFTEN, _SELDOM = 0.5, 2.0
"""Seconds between two progress events of a step that counts, and of one that does not."""


class StepError(Exception):
    """A step failed; `mark` is the offset of its start in the log."""

    def __init__(self, job: str, step: Step, ended: Exit, mark: int) -> None:
        how = f"failed with exit code {ended.code}"
        if ended.code < 0:
            how = f"was killed by signal {-ended.code}"
        super().__init__(f"{job}: `{step.title}` {how}")
        self.step = step
        self.ended = ended
        self.mark = mark


class StepContext(NamedTuple):
    """The context of steps: directory, sandbox, compile slots, and configuration file.

    `tools` are the variables of a recipe's toolchain; `store` holds the inputs. `known` is the
    usage of the job's units in earlier builds. `watch` observes what the steps read.
    """

    workdir: WorkDir
    sandbox: Enclosure
    slots: str | None
    file: str
    tools: Mapping[str, str] = {}
    store: str = ""
    foreign: bool = False
    known: Mapping[str, UnitUsage] = {}
    watch: ReadWatch | None = None

    def words(self) -> dict[str, str]:
        """Return the values of the words in braces."""
        task = self.workdir.spec.task
        work = work_path(self.sandbox.kind, self.workdir)
        root = self.sandbox.root if self.sandbox.kind == "bwrap" else None
        inputs = {s.value: f"{work}/inputs/{s.value}" for s in INPUTS.get(task.stage, ())}
        return {
            "work": work,
            "build": f"{work}/build",
            "out": f"{work}/out",
            "inputs": f"{work}/inputs",
            "spec": spec_path(self.sandbox.kind, self.workdir),
            "self": own_python(root) if root else sys.executable,
            "file": self.file,
            "base": str(Path(self.file).parent),
            "root": self.sandbox.root or "",
            **task.facts,
            **inputs,
        }

    def recorded(self) -> dict[str, str]:
        """Return the environment for the result, with the caller's values hidden."""
        env, task = self.environment(), self.workdir.spec.task
        passed = (
            *task.words("pass_env"),
            *(credentials() if task.stage is Stage.PUBLISH else ()),
        )
        hidden = (name for name in passed if name in env)
        return env | dict.fromkeys(hidden, "(the caller's)")

    def environment(self) -> dict[str, str]:
        work = work_path(self.sandbox.kind, self.workdir)
        slots, flags = slots_path(self.sandbox.kind, self.slots), None
        if slots:
            # Another root has its own make, of unknown version.
            old = self.sandbox.root is not None or is_old_make(SYSTEM_PATH)
            flags = makeflags(slots, old_make=old)
        task = self.workdir.spec.task
        first = {"PATH": f"{tools_path(self.sandbox.kind, self.workdir)}/tools"}
        tools = compose(self.tools, first)
        env = job_environment(task, work, flags, tools, foreign=self.foreign)
        folders = (self.sandbox.replaced.get(name, name) for name in env["PATH"].split(":"))
        return env | {"PATH": ":".join(dict.fromkeys(folders))}


def run_steps(
    context: StepContext,
    steps: tuple[Step, ...],
    log: Log,
    on_event: Listener,
    on_units: Callable[[Mapping[str, UnitUsage]], None] = lambda _units: None,
) -> tuple[Usage, ...]:
    """Run the remaining steps; save the cost of each at its end.

    `on_units` is called with the units that a step has compiled, even if it fails.
    """
    workdir, job, watch = context.workdir, context.workdir.spec.task.id, context.watch
    state = workdir.state()
    words, env = context.words(), context.environment()
    tools = _size_of_tools(workdir)
    for number, step in enumerate(steps):
        if number < len(state.steps):
            log.add(f"== step {number + 1}/{len(steps)} was done by an earlier run: {step.title}")
            continue
        if fault := next(step.faults(words), None):
            msg = f"{job}: a step {fault}"
            raise BuildError(msg, hint="correct the step, or get the spec from `torchyard plan`")
        filled = step.filled(words)
        on_event(Stepping(job=job, step=step.title, number=number + 1, of=len(steps)))
        log.add(f"== step {number + 1}/{len(steps)}: {filled.title}")
        whole = msgspec.structs.replace(filled, env=env | filled.env)
        tries = StepTries(workdir, state, step.title)
        meter, seen_as = UnitMeter(), watched_path(context.sandbox.kind, workdir)
        left = WorkLeft(workdir.job, seen_as, meter, context.known)
        if watch:
            watch.before(step)
        try:
            with meter:
                ended = _run(context, whole, tries, log, _Reporter(job, on_event, left))
        finally:
            leave_units(meter, workdir.job, seen_as)
            on_units(meter.units)
        used = tries.usage(ended.used, disk=tools + _disk_usage(workdir))
        log.add(f"== ended well after {ended.seconds:.3f} s")
        _check_outputs(filled, workdir)
        if watch:
            watch.after(step)
        state = msgspec.structs.replace(state, steps=(*state.steps, used), unfinished=None)
        workdir.save(state)
        on_event(Stepped(job=job, usage=used))
    return state.steps


class _Reporter:
    """Emits a step's progress: from its own count, or else from the bytes it writes."""

    def __init__(self, job: str, on_event: Listener, left: WorkLeft) -> None:
        self._job = job
        self._on_event = on_event
        self._left = left
        self._ninja = NinjaProgress(job)
        self._counts = False
        self._reported = 0.0

    def read(self, line: str) -> None:
        """Report the progress in a line of the step."""
        event = self._ninja.read(line)
        if event and (self._is_due(_OFTEN) or event.done == event.total):
            self._counts = True
            if not event.what:  # otherwise it generates code, or tests
                left = self._left.seconds(event.total - event.done)
                event = msgspec.structs.replace(event, left=left)
            self._on_event(event)

    def watch(self, pid: int) -> None:
        """Report the bytes written by a step without a count."""
        if not self._counts and self._is_due(_SELDOM):
            self._on_event(Progress(job=self._job, done=family_written(pid), unit="bytes"))

    def _is_due(self, pause: float) -> bool:
        is_due = time.monotonic() - self._reported > pause
        self._reported = time.monotonic() if is_due else self._reported
        return is_due


def _run(context: StepContext, step: Step, tries: StepTries, log: Log, reporter: _Reporter) -> Exit:
    """Run a step with only its own environment."""
    workdir = context.workdir
    job = workdir.spec.task
    argv = enclose(context.sandbox, step, workdir, context.slots)
    log.add(f"+ {shlex.join(argv)}")
    mark = log.mark()

    def on_line(line: str) -> None:
        log.add(line)
        reporter.read(line)

    def on_sample() -> None:
        tries.note(child.sample)
        reporter.watch(child.pid)

    cwd = _working_directory(context, step)
    child = Child(argv, cwd=cwd, env=step.env, sandbox=context.sandbox.kind)
    try:
        tries.begin(child.pid, process_birth(child.pid))
        child.start()
        ended = child.watch(on_line, on_sample)
    except BaseException:
        child.stop()
        with suppress(OSError):
            tries.note(child.sample, last=True)
        raise
    tries.note(ended.used, last=True)
    if ended.code:
        raise StepError(job.id, step, ended, mark)
    return ended


def _working_directory(context: StepContext, step: Step) -> Path:
    """Make a step's working directory; return the directory to start its process in.

    A sandbox enters the working directory itself, where links can't lead outside.
    """
    workdir = context.workdir
    work = work_path(context.sandbox.kind, workdir)
    if step.cwd.startswith(f"{work}/"):
        with UntrustedTree(workdir.job) as tree, suppress(HostError):  # the step may use a link
            tree.make_directory(os.path.normpath(step.cwd)[len(work) + 1 :])
    if context.sandbox.kind != "none":
        return workdir.folder
    if not Path(step.cwd).is_dir():
        msg = f"{workdir.spec.task.id}: there is no directory `{step.cwd}` for `{step.title}`"
        raise BuildError(msg, hint="correct the step's `cwd`, or let an earlier step make it")
    return Path(step.cwd)


def _check_outputs(step: Step, workdir: WorkDir) -> None:
    with UntrustedTree(workdir.job, OUT) as out:
        for glob in step.outputs:
            if not out.has(glob):
                job = workdir.spec.task.id
                msg = f"{job}: `{step.title}` succeeded, but made no `{glob}` in its {{out}}"
                raise BuildError(msg, hint="correct the step, or its `outputs`")


def _size_of_tools(workdir: WorkDir) -> int:
    """Return the bytes on disk that no step can write."""
    walks = (os.walk(workdir.folder / name) for name in EQUIPMENT)
    paths = (f"{top}/{name}" for walk in walks for top, _, names in walk for name in names)
    return 512 * sum(os.lstat(path).st_blocks for path in paths)


def _disk_usage(workdir: WorkDir) -> int:
    with UntrustedTree(workdir.job) as tree:
        return tree.disk_usage()
