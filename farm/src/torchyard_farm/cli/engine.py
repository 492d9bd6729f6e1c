"""Follows a plan on a farm as if it were built here."""

import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path

from torchyard.engines.engine import clocked, expected, finished
from torchyard.errors import ElsewhereError
from torchyard.host.signals import StopCounter
from torchyard.model.build_result import BuildResult
from torchyard.model.event import Began, Ended, Listener, Noted, Outcome, Started, ended_well
from torchyard.model.job_spec import short_name
from torchyard.store.store import Store
from torchyard_farm.client.following import (
    JobEnded,
    JobStarted,
    PlanFollower,
    cached_results,
    error_text,
)
from torchyard_farm.client.web_api import CANCELLED, GOOD, MasterClient, SubmittedJob
from torchyard_farm.scheduling.plans import FarmPlan, Plans, plan_url
from torchyard_farm.settings.farm import load_farm

_SOON, _SELDOM = 0.5, 5.0
"""Seconds between two polls: after a change, and at most."""

_TICK = 0.2
"""Seconds after which Ctrl-C is noticed."""

_PATIENCE = 600
"""Seconds without an answer of the master after which following fails."""


def follow_plan(
    plan: FarmPlan, store: Store, farm: Path, folder: Path, listen: Listener
) -> BuildResult:
    """Emit the events of a plan until it is over; interrupting this does not stop the plan."""
    began = time.monotonic()
    emit = clocked(listen)
    cached, packages = cached_results(plan)
    project = plan.tasks[0].label
    tasks = [plan.task(number) for number in range(len(plan.jobs))]
    emit(
        Began(
            project=project,
            store=plan.store,
            jobs=len(plan.tasks),
            needed=len(tasks),
            stages=dict(Counter(task.stage.value for task in tasks)),
            expected=expected((task.stage.value, task.needs.time) for task in tasks),
            cached=cached,
            slots=0,
        )
    )
    follower = _Follower(plan, store, farm, folder, emit)
    stopped = bool(plan.jobs) and follower.run()
    ends = list(follower.ends.values())
    unneeded = len(plan.tasks) - cached - len(tasks)
    emit(finished(ends, cached, unneeded, time.monotonic() - began, stopped=stopped))
    again, cancel = (f"torchyard farm {verb} {farm} {plan.id}" for verb in ("follow", "cancel"))
    onward = f"to follow it again: {again}; to cancel it: {cancel}"
    if not stopped:
        onward = f"fix it, and build again; or rebuild jobs on their pages, and {again}"
    return BuildResult(project, packages, ends, onward)


class _Follower:
    """Polls a plan, and emits events for what has changed."""

    def __init__(
        self, plan: FarmPlan, store: Store, farm: Path, folder: Path, emit: Listener
    ) -> None:
        self._plan = plan
        self._store = store
        self._plans = Plans(farm)
        self._folder = folder
        settings = load_farm(farm)
        self._page = plan_url(settings.url, plan.id)
        self._again = f"when the master is back: torchyard farm follow {farm} {plan.id}"
        self._master = MasterClient(settings)
        self._follower = PlanFollower(plan)
        self._changes: deque[JobStarted | JobEnded] = deque()
        self._emit = emit
        self.ends: dict[int, Ended] = {}

    def run(self) -> bool:
        """Follow until the plan is over or a signal arrives; return whether one did."""
        self._emit(Noted(text=f"its plan: {self._page}"))
        nap, heard, is_silent = _SOON, time.monotonic(), False
        with StopCounter() as stops:
            while True:
                is_open = self._plan.id in self._plans.open()  # before reading the ends
                try:
                    is_quiet = not self._poll(is_open=is_open)
                    is_over = self._is_over()
                    heard, is_silent = time.monotonic(), False
                except ElsewhereError as error:
                    if time.monotonic() - heard > _PATIENCE:
                        raise ElsewhereError(str(error), hint=self._again) from error
                    if not is_silent:
                        self._emit(Noted(text=f"{error}; retrying"))
                    is_quiet = is_silent = True
                else:
                    if is_over or not is_open:
                        self._skip("an input failed" if is_open else "its plan was cancelled")
                        return False
                nap = min(1.25 * nap, _SELDOM) if is_quiet else _SOON
                if _sleep(nap, lambda: bool(stops.count)):
                    self._leave()
                    return True

    def _is_over(self) -> bool:
        """Return whether nothing more happens without a user's action, such as Rebuild."""
        return self._follower.is_over and not self._master.unfinished(self._plan.id)

    def _poll(self, *, is_open: bool) -> bool:
        """Emit events for changes, and return whether there are any."""
        running = self._master.running(self._plan.id)
        ended = self._master.ended(self._plan.id, self._follower.since(running, is_open=is_open))
        self._changes.extend(self._follower.take(running, ended))
        is_new = bool(self._changes)
        while self._changes:  # removed one by one: the store may fail in between
            match self._changes[0]:
                case JobStarted() as started:
                    self._begin(started)
                case JobEnded() as over:
                    self._end(over.job, over.submitted)
            self._changes.popleft()
        return is_new

    def _begin(self, started: JobStarted) -> None:
        if started.lost:
            self._emit(self._ended(started.job, "retry", f"{started.lost} did not finish it"))
        task = self._plan.task(started.job)
        self.ends.pop(started.job, None)
        self._emit(
            Started(
                job=task.id,
                fingerprint=task.fingerprint,
                attempt=started.attempt,
                worker=started.machine,
            )
        )

    def _end(self, job: int, submitted: SubmittedJob) -> None:
        if submitted.results in GOOD:
            result = self._store.find(self._plan.task(job).fingerprint)
            ended = (
                self._ended(job, "built", "its result is gone from the store")
                if result is None
                else ended_well(result, built=True)
            )
        elif submitted.results == CANCELLED:
            ended = self._ended(job, "skipped", "a user cancelled it")
        else:
            ended = self._failed(job, submitted)
        self.ends[job] = ended
        self._emit(ended)

    def _failed(self, job: int, submitted: SubmittedJob) -> Ended:
        """Return how a job failed, and write its error message to its file."""
        task = self._plan.task(job)
        last = self._master.last_attempt(submitted)
        text = error_text(last.log)
        if last.held or not text:
            text = f"error: {task.id}: {last.held or 'no error message'}\n{text}".rstrip()
        path = self._folder / f"{short_name(task.stage, task.fingerprint)}.errors"
        where = f"its log, on {last.worker}: {last.page}\n" if last.page else ""
        path.write_text(f"{text}\n{where}", encoding="utf-8")
        why = text.partition("\n")[0].removeprefix("error: ")
        return self._ended(job, "failed", why, last.code)

    def _ended(self, job: int, outcome: Outcome, why: str, code: int = 0) -> Ended:
        task = self._plan.task(job)
        return Ended(job=task.id, fingerprint=task.fingerprint, outcome=outcome, why=why, code=code)

    def _skip(self, why: str) -> None:
        for job in self._follower.left:
            ended = self.ends[job] = self._ended(job, "skipped", why)
            self._emit(ended)

    def _leave(self) -> None:
        """Record the jobs that continue without this command; no events are emitted for them."""
        for job in self._follower.left:
            self.ends[job] = self._ended(job, "skipped", "it continues")


def _sleep(seconds: float, is_stopped: Callable[[], bool]) -> bool:
    """Sleep, and return whether a signal interrupted it."""
    until = time.monotonic() + seconds
    while not is_stopped() and time.monotonic() < until:
        time.sleep(_TICK)
    return is_stopped()
