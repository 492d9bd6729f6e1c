"""Run the jobs of a plan as processes of `torchyard run`, with one pool of compile slots."""

import queue
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from torchyard.engines.engine import BuildContext
from torchyard.engines.guard import Guard, SlotChange
from torchyard.engines.schedule import Schedule
from torchyard.errors import MISSING, BusyError, ElsewhereError, StoreError
from torchyard.host.fork_server import Pool, PoolEvent
from torchyard.host.jobserver import Jobserver
from torchyard.host.memory import read_memory
from torchyard.host.signals import StopCounter
from torchyard.model import event as events
from torchyard.model.event import Listener
from torchyard.model.job_spec import short_name
from torchyard.model.recipe import Stage
from torchyard.model.values import UNDECODABLE
from torchyard.plan.graph import Job, Plan
from torchyard.plan.job_specs import make_job_spec
from torchyard.run.permissions import secrets_for
from torchyard.store.claims import ClaimMonitor
from torchyard.store.store import Store
from torchyard.store.unit_memory import remembered_units

_TICK = 0.5
"""Seconds between two rounds while no job prints."""

_ATTEMPTS = 3
"""The most attempts of a job that fails for external reasons."""

_PAUSE = 1.0
"""Seconds between checks of a job that another process runs."""


_COMMAND = "torchyard.cli.main:main"
_PREPARED = (
    *("torchyard.features.run.command", "torchyard.features.run.use_case"),
    "torchyard.host.system_view:sandbox_fault",
)
"""Modules and cached facts that most jobs need, loaded in advance."""


class RunnerOptions(NamedTuple):
    """How jobs run on this machine."""

    context: BuildContext
    work: Path
    sandbox: str | None
    jobs: int
    slots: int
    deadline: float | None = None
    """When to stop, on the monotonic clock."""


class Runner:
    """Runs the pending jobs of a plan, by their numbers in it."""

    def __init__(
        self,
        plan: Plan,
        schedule: Schedule,
        store: Store,
        options: RunnerOptions,
        emit: Listener,
    ) -> None:
        self._plan = plan
        self._store = store
        self._options = options
        self._emit = emit
        self._schedule = schedule
        self._ends: dict[int, events.Ended] = {}
        self._said: dict[int, events.Ended] = {}
        self._attempts: Counter[int] = Counter()
        self._fewer: dict[int, int] = {}
        self._carved: dict[int, Jobserver] = {}
        self._programs = Pool(_COMMAND, _PREPARED)
        self._changes: queue.SimpleQueue[SlotChange] = queue.SimpleQueue()
        self._patience = ClaimMonitor(store.objects)
        self._waited: set[int] = set()
        self._guard: Guard | None = None
        self._given_up = False
        self._stopped = False

    def run(self) -> tuple[dict[int, events.Ended], bool]:
        """Run all jobs that can run; return their outcomes, and whether the build was stopped."""
        with (
            TemporaryDirectory(prefix="torchyard-") as folder,
            Jobserver(Path(folder, "slots"), self._options.slots) as slots,
            self._programs,
            StopCounter() as stops,
        ):
            guard = self._guard = Guard(slots, self._programs.pids, self._changes.put)
            guard.start()
            try:
                while self._programs or (self._schedule.has_work and not self._given_up):
                    if (stops.count or self._is_late()) and not self._stopped:
                        self._stopped = self._given_up = True
                        why = "stopping; once more" if stops.count else "out of time; Ctrl-C"
                        self._emit(events.Noted(text=f"{why} stops at once"))
                        guard.stop()  # a paused process can't end
                        self._programs.stop()
                    if stops.count > 1:
                        self._programs.kill()
                    self._start_jobs(slots)
                    for output in self._programs.poll(_TICK):
                        self._on_output(output, slots)
                    self._emit_changes()
            finally:
                guard.stop()
                self._programs.end()
        for number in sorted(self._schedule.left):
            self._end(number, "skipped", why="it was not started")
        return self._ends, self._stopped

    def _is_late(self) -> bool:
        deadline = self._options.deadline
        return deadline is not None and time.monotonic() >= deadline

    def _start_jobs(self, slots: Jobserver) -> None:
        """Start jobs while slots are free; each job takes one."""
        while not self._given_up and len(self._programs) < self._options.jobs:
            number = self._schedule.next(time.monotonic())
            if number is None:
                return
            job = self._plan.jobs[number]
            try:
                if self._is_handled_elsewhere(job):
                    continue
            except ElsewhereError:
                if not self._programs:
                    raise
                # Without the store no job can start, but running jobs continue.
                self._schedule.put_back(number, time.monotonic() + _PAUSE)
                return
            if not self._has_room(job) or not slots.take(_TICK if not self._programs else 0.05):
                self._schedule.put_back(number)
                return
            self._start(job, slots)

    def _has_room(self, job: Job) -> bool:
        """Return whether a job's memory is free; a single job always starts."""
        wants = job.settings.needs.memory
        return not (wants and self._programs) or read_memory().available >= wants

    def _is_handled_elsewhere(self, job: Job) -> bool:
        """Return whether another process has run a job meanwhile, or runs it now."""
        if self._store.has(job.fingerprint):
            self._end(job.number, "cached", why="another process made it")
            return True
        holder = self._patience.holder(job.fingerprint)
        if holder is not None:
            self._wait_for(job, f"process {holder.pid} on {holder.host}")
        return holder is not None

    def _wait_for(self, job: Job, who: str) -> None:
        """Leave a job to another process, and check it again later."""
        if job.number not in self._waited:
            self._waited.add(job.number)
            self._emit(
                events.Noted(job=job.identifier, text=f"waiting for {who}, which works on it")
            )
        self._schedule.put_back(job.number, time.monotonic() + _PAUSE)

    def _start(self, job: Job, slots: Jobserver) -> None:
        options, number = self._options, job.number
        context, name = options.context, self._name(number)
        spec = context.folder / f"{name}.spec.json"
        spec.write_bytes(msgspec.json.encode(make_job_spec(self._plan, job)))
        argv = ["torchyard", "run", "--spec", str(spec), "--json"]
        argv += ["--no-wait", "--file", context.file, "--store", self._store.url]
        argv += ["--work", str(options.work)]
        argv += ["--jobserver", str(self._pool(number, slots).path)]
        if options.sandbox:
            argv += ["--sandbox", options.sandbox]
        if context.cache:
            argv += ["--cache", context.cache]
        if context.copies:
            argv += ["--copies", context.copies]
        stdin = b""
        if secrets := secrets_for(job.stage, self._store):
            argv.append("--secrets")
            stdin = msgspec.json.encode(dict(secrets))
        self._attempts[number] += 1
        if self._guard and job.stage in (Stage.CORE, Stage.BINDINGS):
            self._guard.units.add(remembered_units(self._store.objects, job.identifier))
        self._programs.begin(number, argv, context.folder / f"{name}.errors", stdin)

    def _pool(self, number: int, slots: Jobserver) -> Jobserver:
        """Return the shared jobserver, or a separate one for a job whose compiler was killed."""
        if number not in self._fewer:
            return slots
        path = slots.path.with_name(f"slots-{number}-{self._attempts[number]}")
        carved = slots.carve(path, self._fewer[number] - 1, _TICK)
        # If others hold all slots, it runs with a single one: slow, but safe.
        self._carved[number] = carved or Jobserver(path, 0)
        return self._carved[number]

    def _name(self, number: int) -> str:
        job = self._plan.jobs[number]
        return short_name(job.stage, job.fingerprint)

    def _on_output(self, output: PoolEvent, slots: Jobserver) -> None:
        number = output.key
        if output.code is None:
            with suppress(*UNDECODABLE):  # output that is no event
                self._on_event(number, events.decode_event(output.line))
            return
        slots.give()
        if number in self._carved:
            self._carved.pop(number).close()
        (self._options.context.folder / f"{self._name(number)}.spec.json").unlink(missing_ok=True)
        self._judge(number, output.code)

    def _on_event(self, number: int, event: events.AnyEvent) -> None:
        """Pass on an event of a job; hold back its end until the process ends."""
        if isinstance(event, events.Ended):
            self._said[number] = event
        elif isinstance(event, events.Started):
            self._emit(msgspec.structs.replace(event, attempt=self._attempts[number]))
        else:
            self._emit(event)

    def _judge(self, number: int, code: int) -> None:
        """Interpret the exit of a job's process."""
        job = self._plan.jobs[number]
        ended = self._said.pop(number, None)
        if code == 0 and ended is not None:
            self._ends[number] = ended
            self._emit(ended)
            self._schedule.done(number)
        elif code == BusyError.exit_code:
            self._attempts[number] -= 1
            self._wait_for(job, "another process")
        elif self._stopped:
            self._schedule.left.discard(number)
            self._end(number, "skipped", why="it was stopped")
        elif not self._given_up and self._may_work(job, code, ended):
            self._schedule.put_back(number, time.monotonic() + _PAUSE * self._attempts[number])
        else:
            self._fail(number, code, ended)

    def _may_work(self, job: Job, code: int, ended: events.Ended | None) -> bool:
        """Return whether to retry a failed job, and prepare the retry."""
        reason = ended.reason if ended else ""
        if self._attempts[job.number] >= _ATTEMPTS:
            return False
        if code < 0:
            why = f"its process was killed by signal {-code}"
        elif code == StoreError.exit_code and reason == MISSING:
            with suppress(ElsewhereError):  # the next attempt will fail the same way
                self._schedule.lost(job.number, self._store.has)
            why = "an input was missing from the store, and is made again"
        elif code == ElsewhereError.exit_code and reason == "memory":
            fewer = max(1, self._options.slots >> self._attempts[job.number])
            self._fewer[job.number] = fewer
            why = f"a compiler was killed; now with at most {fewer} of {self._options.slots} slots"
        elif code == ElsewhereError.exit_code and reason != "disk":
            why = ended.why if ended else ""
        else:
            return False
        self._emit(self._ended(job.number, "retry", code=code, reason=reason, why=why))
        return True

    def _fail(self, number: int, code: int, ended: events.Ended | None) -> None:
        if ended is None:
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            code = code if code >= 0 else ElsewhereError.exit_code
            ended = self._ended(number, "failed", code=code, why=f"its process ended with {how}")
        self._ends[number] = ended
        self._emit(ended)
        for user in self._schedule.fail(number):
            self._end(user, "skipped", why=f"{ended.job} failed")
        self._given_up = self._given_up or not self._options.context.keep_going

    def _end(self, number: int, outcome: events.Outcome, why: str) -> None:
        """Emit the end of a job that none of our processes ran."""
        ended = self._ends[number] = self._ended(number, outcome, why=why)
        self._emit(ended)
        if outcome == "cached":
            self._schedule.done(number)

    def _ended(
        self, number: int, outcome: events.Outcome, *, why: str, code: int = 0, reason: str = ""
    ) -> events.Ended:
        job = self._plan.jobs[number]
        return events.Ended(
            job=job.identifier,
            fingerprint=job.fingerprint,
            outcome=outcome,
            code=code,
            reason=reason,
            why=why,
        )

    def _emit_changes(self) -> None:
        """Emit changes of the memory guard, in its thread."""
        while not self._changes.empty():
            change = self._changes.get()
            self._emit(
                events.SlotsChanged(
                    allowed=change.allowed,
                    total=self._options.slots,
                    paused=change.paused,
                    available=change.available,
                    why=change.reason,
                )
            )
