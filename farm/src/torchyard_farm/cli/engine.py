"""Follows a plan on a farm as if it were built here."""

import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path

from torchyard.engines.engine import Listener, clocked, expected, finished
from torchyard.errors import ElsewhereError
from torchyard.host.signals import StopCounter
from torchyard.model.build_result import BuildResult
from torchyard.model.event import Began, Ended, Noted, Outcome, Started, ended_well
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
"""Seconds between two looks, when something has just happened and when nothing does."""

_TICK = 0.2
"""Seconds after which Ctrl-C is noticed."""

_PATIENCE = 600
"""Seconds without any answer of the master after which nobody waits for it any more."""


def follow_plan(
    plan: FarmPlan, store: Store, farm: Path, folder: Path, listen: Listener
) -> BuildResult:
    """Tell how a plan goes until it is over; whoever stops this stops nothing else."""
    began = time.monotonic()
    tell = clocked(listen)
    cached, packages = cached_results(plan)
    project = plan.tasks[0].id.partition(":")[2].partition("/")[0]
    tasks = [plan.task(number) for number in range(len(plan.jobs))]
    tell(
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
    follower = _Follower(plan, store, farm, folder, tell)
    stopped = bool(plan.jobs) and follower.run()
    ends = list(follower.ends.values())
    tell(finished(ends, cached, time.monotonic() - began, stopped=stopped))
    again, cancel = (f"torchyard farm {verb} {farm} {plan.id}" for verb in ("follow", "cancel"))
    onward = f"to follow it again: {again}; to end it: {cancel}"
    if not stopped:
        onward = f"mend it, and build anew; or rebuild jobs on their pages, and {again}"
    return BuildResult(project, packages, ends, onward)


class _Follower:
    """Looks at a plan from time to time, and tells what has happened."""

    def __init__(
        self, plan: FarmPlan, store: Store, farm: Path, folder: Path, tell: Listener
    ) -> None:
        self._plan = plan
        self._store = store
        self._plans = Plans(farm)
        self._folder = folder
        settings = load_farm(farm)
        self._page = plan_url(settings.url, plan.id)
        self._again = f"when the master is back: torchyard farm follow {farm} {plan.id}"
        self._master = MasterClient(settings)
        self._course = PlanFollower(plan)
        self._moves: deque[JobStarted | JobEnded] = deque()
        self._tell = tell
        self.ends: dict[int, Ended] = {}

    def run(self) -> bool:
        """Follow until all is over, or somebody stops it; whether somebody did."""
        self._tell(Noted(text=f"its plan: {self._page}"))
        nap, heard, is_silent = _SOON, time.monotonic(), False
        with StopCounter() as stops:
            while True:
                is_open = self._plan.id in self._plans.open()  # asked first: its ends are told then
                try:
                    is_quiet = not self._look(is_open=is_open)
                    is_over = self._is_over()
                    heard, is_silent = time.monotonic(), False
                except ElsewhereError as error:
                    if time.monotonic() - heard > _PATIENCE:
                        raise ElsewhereError(str(error), hint=self._again) from error
                    if not is_silent:
                        self._tell(Noted(text=f"{error}; it is asked again"))
                    is_quiet = is_silent = True
                else:
                    if is_over or not is_open:
                        self._skip("what it needs failed" if is_open else "its plan was cancelled")
                        return False
                nap = min(1.25 * nap, _SELDOM) if is_quiet else _SOON
                if _sleep(nap, lambda: bool(stops.count)):
                    self._leave()
                    return True

    def _is_over(self) -> bool:
        """Whether nothing goes on unless somebody helps; who pressed Rebuild has done so."""
        return self._course.is_over and not self._master.out(self._plan.id)

    def _look(self, *, is_open: bool) -> bool:
        """Tell what is new; whether anything is."""
        going = self._master.going(self._plan.id)
        ended = self._master.ended(self._plan.id, self._course.since(going, is_open=is_open))
        self._moves.extend(self._course.take(going, ended))
        is_new = bool(self._moves)
        while self._moves:  # the store may not answer in the middle of it
            match self._moves[0]:
                case JobStarted() as begun:
                    self._begin(begun)
                case JobEnded() as over:
                    self._end(over.job, over.sent)
            self._moves.popleft()
        return is_new

    def _begin(self, begun: JobStarted) -> None:
        if begun.lost:
            self._tell(self._ended(begun.job, "retry", f"{begun.lost} did not bring it to an end"))
        task = self._plan.task(begun.job)
        self.ends.pop(begun.job, None)
        self._tell(
            Started(
                job=task.id,
                fingerprint=task.fingerprint,
                attempt=begun.attempt,
                worker=begun.machine,
            )
        )

    def _end(self, job: int, sent: SubmittedJob) -> None:
        if sent.results in GOOD:
            result = self._store.find(self._plan.task(job).fingerprint)
            ended = (
                self._ended(job, "built", "its result is gone from the store")
                if result is None
                else ended_well(result, built=True)
            )
        elif sent.results == CANCELLED:
            ended = self._ended(job, "skipped", "somebody stopped it")
        else:
            ended = self._bad(job, sent)
        self.ends[job] = ended
        self._tell(ended)

    def _bad(self, job: int, sent: SubmittedJob) -> Ended:
        """How a job failed; what it said is left where everybody looks for it."""
        task = self._plan.task(job)
        last = self._master.last_try(sent)
        said = error_text(last.log)
        if last.held or not said:
            said = f"error: {task.id}: {last.held or 'it did not say why'}\n{said}".rstrip()
        path = self._folder / f"{short_name(task.stage, task.fingerprint)}.errors"
        where = f"its log, on {last.worker}: {last.page}\n" if last.page else ""
        path.write_text(f"{said}\n{where}", encoding="utf-8")
        why = said.partition("\n")[0].removeprefix("error: ")
        return self._ended(job, "failed", why, last.code)

    def _ended(self, job: int, outcome: Outcome, why: str, code: int = 0) -> Ended:
        task = self._plan.task(job)
        return Ended(job=task.id, fingerprint=task.fingerprint, outcome=outcome, why=why, code=code)

    def _skip(self, why: str) -> None:
        for job in self._course.left:
            ended = self.ends[job] = self._ended(job, "skipped", why)
            self._tell(ended)

    def _leave(self) -> None:
        """Note what goes on without us; nobody needs to hear it of each job."""
        for job in self._course.left:
            self.ends[job] = self._ended(job, "skipped", "it goes on")


def _sleep(seconds: float, is_stopped: Callable[[], bool]) -> bool:
    """Wait a while; whether somebody stopped it."""
    until = time.monotonic() + seconds
    while not is_stopped() and time.monotonic() < until:
        time.sleep(_TICK)
    return is_stopped()
