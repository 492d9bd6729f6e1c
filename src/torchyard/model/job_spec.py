"""A job that can be carried out without the plan that it comes from.

An order is what engines hand to `torchyard run`, what a result remembers, and what a package
carries, so that it can be made again from itself alone.
"""

from typing import Literal

from msgspec.structs import replace

from torchyard.model.canonical import fingerprint
from torchyard.model.config import Sandbox, Source
from torchyard.model.identifier import scope_of
from torchyard.model.matrix import Needs
from torchyard.model.recipe import Stage
from torchyard.model.step import FACTS, Setting
from torchyard.model.values import Value

ORDER = "torchyard-order.json"
"""What an order is called, in a job's directory and in the packages that carry it."""


class Payload(Value, kw_only=True):
    """Everything that a job's fingerprint covers; `inputs` are fingerprints, sorted."""

    inputs: list[str]
    recipe: str
    scope: str
    settings: dict[str, Setting]
    stage: Stage
    stage_revision: int


class Task(Value, kw_only=True):
    """One job, spelt out. Its fingerprint covers all of it but needs and source."""

    id: str
    stage: Stage
    stage_revision: int
    scope: str
    recipe: str
    fingerprint: str
    inputs: tuple[str, ...] = ()
    settings: dict[str, Setting] = {}
    needs: Needs = Needs()
    source: Source | None = None

    @property
    def payload(self) -> Payload:
        """Everything that the fingerprint is the sha256 of."""
        return Payload(
            inputs=sorted(self.inputs),
            recipe=self.recipe,
            scope=self.scope,
            settings=self.settings,
            stage=self.stage,
            stage_revision=self.stage_revision,
        )

    @property
    def is_true(self) -> bool:
        """Whether the fingerprint is that of what the task says."""
        return fingerprint(self.payload) == self.fingerprint

    @property
    def facts(self) -> dict[str, str]:
        """What steps may want to know about the job: the fields of its scope, by name."""
        label = self.id.partition(":")[2].partition("/")[0]
        name, _, version = label.rpartition("-")
        fields = scope_of(self.stage, self.scope)
        names = ("channel",) if self.stage is Stage.PUBLISH else tuple(FACTS)
        return {"name": name, "version": version, **dict(zip(names, fields, strict=False))}

    def text(self, name: str) -> str:
        """A setting that is a word; empty if there is none."""
        value = self.settings.get(name, "")
        return value if isinstance(value, str) else ""

    def words(self, name: str) -> list[str]:
        """A setting that is a list of words; empty if there is none."""
        value = self.settings.get(name, ())
        return [word for word in value if isinstance(word, str)] if isinstance(value, tuple) else []

    def table(self, name: str) -> dict[str, str]:
        """A setting that is a table; empty if there is none."""
        value = self.settings.get(name, {})
        return value if isinstance(value, dict) else {}


_DIGITS = 16
_COMMIT_DIGITS = 40


def short_name(stage: str, fingerprint: str) -> str:
    """What files and directories that belong to a job are called."""
    return f"{stage}-{fingerprint[:_DIGITS]}"


class JobSpec(Value, kw_only=True):
    """A task, last, behind everything that it is made from, each in front of what needs it."""

    version: Literal[1] = 1
    tasks: tuple[Task, ...]
    sandbox: Sandbox = Sandbox()

    @property
    def task(self) -> Task:
        return self.tasks[-1]

    @property
    def compiled(self) -> Task:
        """The task that compiles for the compute platform: the core, or else the bindings."""
        stages = (Stage.CORE, Stage.BINDINGS)
        return next(task for stage in stages for task in self.tasks if task.stage is stage)

    @property
    def commit(self) -> str:
        """The commit that a job is made from, or the digest of a directory; empty if unknown."""
        sources = (task for task in self.tasks if task.stage is Stage.SOURCE)
        names = (task.text("commit") or task.text("digest") for task in sources)
        return next(names, "")[:_COMMIT_DIGITS]

    @property
    def is_true(self) -> bool:
        """Whether every task has the fingerprint of what it says."""
        return all(task.is_true for task in self.tasks)

    @property
    def anywhere(self) -> str:
        """The fingerprint that a machine gives the task which knows nothing of its toolchain."""
        known: dict[str, str] = {}
        for task in self.tasks:
            inputs = sorted(known.get(i, i) for i in task.inputs)
            settings = task.settings
            if "identity" in settings:
                settings = {**settings, "identity": {}}
            payload = replace(task.payload, inputs=inputs, settings=settings)
            known[task.fingerprint] = fingerprint(payload)
        return known[self.task.fingerprint]

    def of(self, task: Task) -> "JobSpec":
        """The order of one of the tasks that this one is made from."""
        needed = {task.fingerprint}
        kept = []
        for other in reversed(self.tasks):
            if other.fingerprint in needed:
                kept.append(other)
                needed.update(other.inputs)
        return JobSpec(tasks=tuple(reversed(kept)), sandbox=self.sandbox)
