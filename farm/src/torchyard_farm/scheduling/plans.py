"""Plans as the farm keeps them: files that never change, each named by its id.

plans/ID.json           a plan that is being built
plans/ID.cancel         somebody wants it to end
plans/ended/ID.json     a plan that is over
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec

from torchyard.engines.pending import demanded, graph_of, urgency
from torchyard.errors import HostError, SelectionError
from torchyard.host.locks import replace_bytes
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
"""What the plug-in is called that shows plans in the web interface."""

_ENDED = "ended"


class PlannedJob(Value, kw_only=True):
    """A job that has to be done: its task, and the jobs of the same plan that come before it.

    `large` are the tasks, done or not, whose large results it is made from.
    """

    task: int
    kind: str
    after: tuple[int, ...] = ()
    large: tuple[int, ...] = ()
    urgency: int = 0


class FarmPlan(Value, kw_only=True):
    """What is left of a plan, spelt out; `tasks` are also those that there are results of."""

    version: Literal[1] = 1
    id: str
    store: str
    tasks: tuple[Task, ...]
    jobs: tuple[PlannedJob, ...]
    sandbox: Sandbox = Sandbox()
    trial: str = ""
    """Its name, if it only tries what is published: then failures are what it is for, and stay."""

    def task(self, job: int) -> Task:
        return self.tasks[self.jobs[job].task]

    def order(self, job: int) -> JobSpec:
        """What a worker needs to carry out a job; a publish job names its inputs only."""
        task = self.task(job)
        tasks = (task,) if task.stage is Stage.PUBLISH else self.tasks
        return JobSpec(tasks=tasks, sandbox=self.sandbox).of(task)

    @property
    def source(self) -> str:
        """The commit that everything is made from, or the digest of a directory."""
        for task in self.tasks:
            if task.stage is Stage.SOURCE:
                return task.text("commit") or task.text("digest")
        return ""

    def page(self, job: int) -> str:
        """Where a job's history is: that of its cell, over all versions of the project."""
        return history_page(self.task(job), self.trial)


def history_page(task: Task, trial: str) -> str:
    """What the page with the history of a task is called: its project and scope.

    Those of a trial have its name before them.
    """
    page = "/".join(filter(None, (task.facts["name"], task.scope)))
    return f"{trial}: {page}" if trial else page


def plan_name(plan: Plan, moment: str, occasion: str = "") -> str:
    """What a plan is called that is handed in at a moment: no two are called the same.

    One that is made again and again has the name of that behind it: `…-3f09c1@nightly`.
    """
    return spell_plan_name(plan.label, moment, plan.fingerprints, occasion)


def spell_plan_name(label: str, moment: str, fingerprints: Iterable[str], occasion: str) -> str:
    digest = fingerprint([moment, *fingerprints])
    name = f"{label}-{moment.replace('-', '').replace(':', '')}-{digest[:6]}"
    return f"{name}@{occasion}" if occasion else name


def plan_moment(name: str) -> str:
    """When a plan was handed in, or was due: `20261115T142000Z`."""
    return name.partition("@")[0].rsplit("-", 2)[1]


def farm_plan(plan: Plan, known: Collection[str], *, name: str, store: str) -> FarmPlan:
    """Take from a plan what there are no results of."""
    graph = graph_of(plan)
    left = sorted(demanded(graph, known, graph.wanted))
    ways = urgency(plan, graph)
    places = {number: place for place, number in enumerate(left)}
    tasks = tuple(make_task(plan, job) for job in plan.jobs)
    jobs = tuple(
        PlannedJob(
            task=number,
            kind=job_class(tasks[number]),
            after=tuple(places[i] for i in graph.inputs[number] if i in places),
            large=large_inputs(tasks[number], ((i, tasks[i]) for i in graph.inputs[number])),
            urgency=ways[number],
        )
        for number in left
    )
    return FarmPlan(id=name, store=store, tasks=tasks, jobs=jobs, sandbox=plan.config.sandbox)


def plan_url(web: str, plan: str) -> str:
    """Where people find a plan, below the address of the web interface."""
    return f"{web}plugins/{PAGES}/{quote(plan, safe='')}"


class Plans:
    """The plans in the directory of a master."""

    def __init__(self, master: Path) -> None:
        self._folder = master / FOLDER

    def add(self, plan: FarmPlan) -> None:
        """Hand a plan to the master, whole or not at all."""
        self.put(plan.id, msgspec.json.encode(plan).decode())

    def put(self, name: str, text: str, *, over: bool = False) -> None:
        """Keep a plan, as another master of the farm has it."""
        folder = self._folder / _ENDED if over else self._folder
        folder.mkdir(parents=True, exist_ok=True)
        replace_bytes(folder / f"{name}.json", text.encode())

    def text(self, name: str) -> str:
        """A plan as it is written; one that nobody can read is an error."""
        return msgspec.json.encode(self.read(name)).decode()

    def open(self) -> list[str]:
        """The plans that are being built."""
        return sorted(path.stem for path in self._folder.glob("*.json"))

    def ended(self) -> list[str]:
        """The plans that are over."""
        return sorted(path.stem for path in (self._folder / _ENDED).glob("*.json"))

    def count(self, name: str) -> int:
        """How many jobs a plan has; none if it can't be read."""
        path = self._path(name)
        with suppress(HostError):
            return _count(path)
        return 0

    def moment(self, name: str) -> int:
        """When a plan was handed in, in seconds since 1970."""
        return int(self._path(name).stat().st_mtime)

    def read(self, name: str) -> FarmPlan:
        """A plan, whether it is over or not."""
        return _read(self._path(name))

    def _path(self, name: str) -> Path:
        for folder in (self._folder, self._folder / _ENDED):
            path = folder / f"{name}.json"
            if path.parent == folder and path.exists():  # whoever looks can ask for any name
                return path
        msg = f"there is no plan `{name}`"
        raise SelectionError(msg, hint="`torchyard farm status` lists those that are being built")

    def past(self, occasion: str) -> Iterator[FarmPlan]:
        """Those of an occasion that can be read, the newest first."""
        for name in self.of(occasion):
            with suppress(HostError):
                yield self.read(name)

    def of(self, occasion: str) -> list[str]:
        """The plans that are made again and again, over or not; the newest first."""
        folders = (self._folder, self._folder / _ENDED)
        names = {path.stem for folder in folders for path in folder.glob(f"*@{occasion}.json")}
        return sorted(names, key=plan_moment, reverse=True)

    def cancel(self, name: str) -> None:
        """Ask the master to end a plan."""
        if name not in self.open():
            msg = f"no plan `{name}` is being built"
            raise SelectionError(msg, hint="`torchyard farm status` lists those that are")
        (self._folder / f"{name}.cancel").touch()

    def cancelled(self) -> list[str]:
        return sorted(path.stem for path in self._folder.glob("*.cancel"))

    def end(self, name: str) -> None:
        """Put a plan away; that somebody wanted this is forgotten last."""
        ended = self._folder / _ENDED
        ended.mkdir(exist_ok=True)
        path = self._folder / f"{name}.json"
        if path.exists():
            path.rename(ended / path.name)
        (self._folder / f"{name}.cancel").unlink(missing_ok=True)

    def forget(self, name: str) -> None:
        """Remove a plan that is over."""
        (self._folder / _ENDED / f"{name}.json").unlink(missing_ok=True)


def decode_plan(text: str | bytes) -> FarmPlan:
    return msgspec.json.decode(text, type=FarmPlan)


def _load(path: Path) -> FarmPlan:
    try:
        return decode_plan(path.read_bytes())
    except (msgspec.DecodeError, OSError) as error:
        msg = f"`{path}` is no plan that this torchyard-farm can read: {error}"
        hint = "a newer version may: upgrade; else `torchyard farm cancel` it, and submit it anew"
        raise HostError(msg, hint=hint) from error


@lru_cache(maxsize=8)
def _read(path: Path) -> FarmPlan:
    """Read a plan; as it never changes, a few are remembered."""
    return _load(path)


@lru_cache(maxsize=1024)
def _count(path: Path) -> int:
    return len(_load(path).jobs)
