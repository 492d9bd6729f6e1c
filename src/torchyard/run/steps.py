"""Running the steps of a job, one after the other, from where the last try got to."""

import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.config.credentials import load_credentials
from torchyard.errors import BuildError
from torchyard.host.child import Child, Exit
from torchyard.host.jobserver import is_old_make, makeflags
from torchyard.host.locks import disk_usage
from torchyard.host.process_id import process_birth
from torchyard.model.config import Sandbox
from torchyard.model.event import AnyEvent, Progress, Stepped, Stepping
from torchyard.model.job_spec import ORDER
from torchyard.model.recipe import Stage
from torchyard.model.result import Usage
from torchyard.model.step import INPUTS, Step
from torchyard.run.environment import compose
from torchyard.run.log import Log
from torchyard.run.sandbox import enclose, slots_path, work_path
from torchyard.run.workdir import State, WorkDir
from torchyard.toolchain.variables import SYSTEM_PATH

_COUNT = re.compile(r"\[(\d+)/(\d+)[\] ]")
"""How ninja begins a line: so many of so many commands are done."""

_OFTEN = 0.5
"""Seconds between two tellings of how far a step is."""

Report = Callable[[AnyEvent], None]


class StepError(Exception):
    """A step failed; `mark` is where in the log it began."""

    def __init__(self, job: str, step: Step, ended: Exit, mark: int) -> None:
        how = f"failed with exit code {ended.code}"
        if ended.code < 0:
            how = f"was killed by signal {-ended.code}"
        super().__init__(f"{job}: `{step.title}` {how}")
        self.step = step
        self.ended = ended
        self.mark = mark


class StepContext(NamedTuple):
    """What steps need to run: where, shut in by what, with which slots, and from which file.

    `tools` are the variables by which they find a recipe's toolchain; `store` is where their
    inputs come from.
    """

    place: WorkDir
    sandbox: Sandbox
    slots: str | None
    file: str
    tools: Mapping[str, str] = {}
    store: str = ""

    def places(self) -> dict[str, str]:
        """What the words in braces stand for."""
        task = self.place.order.task
        work = work_path(self.sandbox, self.place.folder)
        inputs = {s.value: f"{work}/inputs/{s.value}" for s in INPUTS.get(task.stage, ())}
        return {
            "work": work,
            "build": f"{work}/build",
            "out": f"{work}/out",
            "inputs": f"{work}/inputs",
            "order": f"{work}/{ORDER}",
            "self": sys.executable,
            "file": self.file,
            "base": str(Path(self.file).parent),
            **task.facts,
            **inputs,
        }

    def recorded(self) -> dict[str, str]:
        """The environment as others may read it: what is the caller's own is not for them."""
        env, task = self.environment(), self.place.order.task
        passed = (
            *task.words("pass_env"),
            *(load_credentials() if task.stage is Stage.PUBLISH else ()),
        )
        hidden = (name for name in passed if name in env)
        return env | dict.fromkeys(hidden, "(the caller's)")

    def environment(self) -> dict[str, str]:
        work = work_path(self.sandbox, self.place.folder)
        slots, flags = slots_path(self.sandbox, self.slots), None
        if slots:
            # Another root has a make of its own, of which nothing is known.
            old = self.sandbox.root is not None or is_old_make(SYSTEM_PATH)
            flags = makeflags(slots, old_make=old)
        return compose(self.place.order.task, work, flags, self.tools)


def run_steps(
    bench: StepContext, steps: tuple[Step, ...], log: Log, report: Report
) -> tuple[Usage, ...]:
    """Run all steps that have not been run; what each cost is remembered at once."""
    place, job = bench.place, bench.place.order.task.id
    state = place.state()
    places, env = bench.places(), bench.environment()
    for number, step in enumerate(steps):
        if number < len(state.steps):
            log.add(f"== step {number + 1}/{len(steps)} was done by an earlier run: {step.title}")
            continue
        filled = step.filled(places)
        report(Stepping(job=job, step=step.title, number=number + 1, of=len(steps)))
        log.add(f"== step {number + 1}/{len(steps)}: {filled.title}")
        whole = msgspec.structs.replace(filled, env=env | filled.env)
        ended = _run(bench, whole, state, log, report)
        used = Usage(
            step=step.title,
            seconds=round(ended.seconds, 3),
            cpu=round(ended.cpu, 3),
            memory=ended.memory,
            disk=disk_usage(place.folder),
        )
        log.add(f"== ended well after {used.seconds} s")
        _check_outputs(job, filled, place.out)
        state = State(sandbox=state.sandbox, steps=(*state.steps, used))
        place.save(state)
        report(Stepped(job=job, usage=used))
    return state.steps


def _run(bench: StepContext, step: Step, state: State, log: Log, report: Report) -> Exit:
    """Run one step, whose environment is all that it gets."""
    place = bench.place
    job = place.order.task
    argv = enclose(bench.sandbox, step, place.folder, bench.slots)
    log.add(f"+ {shlex.join(argv)}")
    mark, told = log.mark(), 0.0

    def on_line(line: str) -> None:
        nonlocal told
        log.add(line)
        counted = _COUNT.match(line)
        if counted and (time.monotonic() - told > _OFTEN or counted[1] == counted[2]):
            told = time.monotonic()
            report(Progress(job=job.id, done=int(counted[1]), total=int(counted[2])))

    inside = work_path(bench.sandbox, place.folder)
    cwd = Path(step.cwd.replace(inside, str(place.folder), 1))
    cwd.mkdir(parents=True, exist_ok=True)
    child = Child(argv, cwd=cwd, env=step.env)
    try:
        born = process_birth(child.pid)
        place.save(msgspec.structs.replace(state, group=child.pid, born=born))
        child.start()
        ended = child.watch(on_line)
    except BaseException:
        child.stop()
        raise
    if ended.code:
        raise StepError(job.id, step, ended, mark)
    return ended


def _check_outputs(job: str, step: Step, out: Path) -> None:
    for glob in step.outputs:
        if not any(out.glob(glob)):
            msg = f"{job}: `{step.title}` ended well, but made no `{glob}` in its {{out}}"
            raise BuildError(msg, hint="mend the step, or what it is said to make")
