"""Plans as files that never change, each named by its id.

plans/ID.json           a plan that is being built
plans/ID.cancel         it was cancelled
plans/ended/ID.json     a plan that is over
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec

from torchyard.engines.pending import job_graph, missing_jobs, urgency
from torchyard.errors import HostError, SelectionError
from torchyard.host.durable import replace_durably
from torchyard.model.canonical import fingerprint
from torchyard.model.config import Sandbox
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.values import Value
from torchyard.plan.graph import Plan
from torchyard.plan.job_specs import make_task
from torchyard_farm.scheduling.job_classes import job_class
from torchyard_farm.scheduling.locality import large_inputs

FOLDER = "plans"
PAGES = "plans"
"""Name of the plug-in that shows plans in the web interface."""

_ENDED = "ended"


class PlannedJob(Value, kw_only=True):
    """A job to do: its task, and the jobs of the same plan that precede it.

    `large` are the tasks, finished or not, with large results among its inputs.
    """

    task: int
    kind: str
    after: tuple[int, ...] = ()
    large: tuple[int, ...] = ()
    urgency: int = 0


class FarmPlan(Value, kw_only=True):
    """The remaining part of a plan; `tasks` includes those with results."""

    version: Literal[1] = 1
    id: str
    store: str
    tasks: tuple[Task, ...]
    jobs: tuple[PlannedJob, ...]
    sandbox: Sandbox = Sandbox()
    trial: str = ""
    """Name of the daily trial, if it is one; then failures are its result."""

    def task(self, job: int) -> Task:
        return self.tasks[self.jobs[job].task]

    def spec(self, job: int) -> JobSpec:
        """Return the specification of a job for a worker; a publish job only names its inputs."""
        task = self.task(job)
        tasks = (task,) if task.stage is Stage.PUBLISH else self.tasks
        return JobSpec(tasks=tasks, sandbox=self.sandbox).of(task)

    @property
    def source(self) -> str:
        """The commit to build, or the digest of a source directory."""
        for task in self.tasks:
            if task.stage is Stage.SOURCE:
                return task.text("commit") or task.text("digest")
        return ""

    def page(self, job: int) -> str:
        """Return the history page of a job's cell, for all versions of the project."""
        return history_page(self.task(job), self.trial)


def history_page(task: Task, trial: str) -> str:
    """Return the name of a task's history page: its project and scope, after the trial if any."""
    page = "/".join(filter(None, (task.facts["name"], task.scope)))
    return f"{trial}: {page}" if trial else page


def plan_name(plan: Plan, moment: str, schedule: str = "") -> str:
    """Return a unique name for a plan that is submitted at a moment.

    The name of its schedule, if any, is at the end: `…-3f09c1@nightly`.
    """
    return spell_plan_name(plan.label, moment, plan.fingerprints, schedule)


def spell_plan_name(label: str, moment: str, fingerprints: Iterable[str], schedule: str) -> str:
    """Return a plan's name from its parts."""
    digest = fingerprint([moment, *fingerprints])
    name = f"{label}-{moment.replace('-', '').replace(':', '')}-{digest[:6]}"
    return f"{name}@{schedule}" if schedule else name


def plan_moment(name: str) -> str:
    """Return when a plan was submitted, or was due: `20261115T142000Z`."""
    return name.partition("@")[0].rsplit("-", 2)[1]


def farm_plan(plan: Plan, stored: Collection[str], *, name: str, store: str) -> FarmPlan:
    """Return the part of a plan without results."""
    graph = job_graph(plan)
    left = sorted(missing_jobs(graph, stored, graph.wanted))
    ways = urgency(plan, graph)
    positions = {number: index for index, number in enumerate(left)}
    tasks = tuple(make_task(plan, job) for job in plan.jobs)
    jobs = tuple(
        PlannedJob(
            task=number,
            kind=job_class(tasks[number]),
            after=tuple(positions[i] for i in graph.inputs[number] if i in positions),
            large=large_inputs(tasks[number], ((i, tasks[i]) for i in graph.inputs[number])),
            urgency=ways[number],
        )
        for number in left
    )
    return FarmPlan(id=name, store=store, tasks=tasks, jobs=jobs, sandbox=plan.config.sandbox)


def plan_url(web: str, plan: str) -> str:
    """Return the address of a plan's page, below that of the web interface."""
    return f"{web}plugins/{PAGES}/{quote(plan, safe='')}"


class Plans:
    """The plans in the directory of a master."""

    def __init__(self, master: Path) -> None:
        self._folder = master / FOLDER

    def add(self, plan: FarmPlan) -> None:
        """Submit a plan to the master, atomically."""
        self.put(plan.id, msgspec.json.encode(plan).decode())

    def put(self, name: str, text: str, *, over: bool = False) -> None:
        """Write a plan from another master of the farm."""
        folder = self._folder / _ENDED if over else self._folder
        folder.mkdir(parents=True, exist_ok=True)
        replace_durably(folder / f"{name}.json", text.encode())

    def text(self, name: str) -> str:
        """Return a plan as JSON; an unreadable one is an error."""
        return msgspec.json.encode(self.read(name)).decode()

    def open(self) -> list[str]:
        """Return the plans being built."""
        return sorted(path.stem for path in self._folder.glob("*.json"))

    def ended(self) -> list[str]:
        """Return the plans that are over."""
        return sorted(path.stem for path in (self._folder / _ENDED).glob("*.json"))

    def count(self, name: str) -> int:
        """Return how many jobs a plan has; 0 if it can't be read."""
        path = self._path(name)
        with suppress(HostError):
            return _count(path)
        return 0

    def moment(self, name: str) -> int:
        """Return when a plan was submitted, in seconds since 1970."""
        return int(self._path(name).stat().st_mtime)

    def read(self, name: str) -> FarmPlan:
        """Return a plan, whether it is over or not."""
        return _read(self._path(name))

    def _path(self, name: str) -> Path:
        for folder in (self._folder, self._folder / _ENDED):
            path = folder / f"{name}.json"
            if path.parent == folder and path.exists():  # names come from web requests, too
                return path
        msg = f"there is no plan `{name}`"
        raise SelectionError(msg, hint="`torchyard farm status` lists the plans being built")

    def past(self, schedule: str) -> Iterator[FarmPlan]:
        """Return the readable plans of a schedule, newest first."""
        for name in self.of(schedule):
            with suppress(HostError):
                yield self.read(name)

    def of(self, schedule: str) -> list[str]:
        """Return the names of the plans of a schedule, over or not, newest first."""
        folders = (self._folder, self._folder / _ENDED)
        names = {path.stem for folder in folders for path in folder.glob(f"*@{schedule}.json")}
        return sorted(names, key=plan_moment, reverse=True)

    def cancel(self, name: str) -> None:
        """Ask the master to cancel a plan."""
        if name not in self.open():
            msg = f"no plan `{name}` is being built"
            raise SelectionError(msg, hint="`torchyard farm status` lists them")
        (self._folder / f"{name}.cancel").touch()

    def cancelled(self) -> list[str]:
        return sorted(path.stem for path in self._folder.glob("*.cancel"))

    def end(self, name: str) -> None:
        """Move a plan to the ended ones; its cancellation mark is removed last."""
        ended = self._folder / _ENDED
        ended.mkdir(exist_ok=True)
        path = self._folder / f"{name}.json"
        if path.exists():
            path.rename(ended / path.name)
        (self._folder / f"{name}.cancel").unlink(missing_ok=True)

    def forget(self, name: str) -> None:
        """Delete a plan that is over."""
        (self._folder / _ENDED / f"{name}.json").unlink(missing_ok=True)


def decode_plan(text: str | bytes) -> FarmPlan:
    return msgspec.json.decode(text, type=FarmPlan)


def _load(path: Path) -> FarmPlan:
    try:
        return decode_plan(path.read_bytes())
    except (msgspec.DecodeError, OSError) as error:
        msg = f"this version of torchyard-farm can't read the plan `{path}`: {error}"
        hint = "upgrade torchyard-farm, or `torchyard farm cancel` the plan and submit it again"
        raise HostError(msg, hint=hint) from error


@lru_cache(maxsize=8)
def _read(path: Path) -> FarmPlan:
    """Read a plan; a few are cached, as plans never change."""
    return _load(path)


@lru_cache(maxsize=1024)
def _count(path: Path) -> int:
    return len(_load(path).jobs)
