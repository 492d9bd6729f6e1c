"""The job spec: a job that can be run without its plan.

Engines pass job specs to `torchyard run`, results record them, and packages contain theirs, so
that a package can be rebuilt from itself alone.
"""

from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from torchyard.model.canonical import fingerprint
from torchyard.model.config import Sandbox, Source
from torchyard.model.identifier import job_identifier, scope_of
from torchyard.model.matrix import Needs
from torchyard.model.recipe import Stage
from torchyard.model.step import FACTS, Setting
from torchyard.model.values import Digest, Value

SPEC_FILE = "torchyard-spec.json"
"""Name of the job spec's file, in a job's directory and in packages."""


_PART = "[A-Za-z0-9_+][A-Za-z0-9_.+-]*"

JobScope = Annotated[str, Meta(pattern=rf"^({_PART}(/{_PART})*)?$(?!\n)")]
"""The path in a job's identifier. No part is `.` or `..`, so it is safe as a directory."""

JobId = Annotated[str, Meta(pattern=rf"^[a-z]+:{_PART}-[0-9][A-Za-z0-9_.+!]*(/{_PART})*$(?!\n)")]
"""An identifier, see `model/identifier.py`."""


class Payload(Value, kw_only=True):
    """Everything that a job's fingerprint covers; `inputs` are fingerprints, sorted."""

    inputs: list[str]
    recipe: str
    scope: str
    settings: dict[str, Setting]
    stage: Stage
    stage_revision: int


class Task(Value, kw_only=True):
    """One job in full. Its fingerprint covers everything except `needs`, `source` and `compilers`.

    `compilers` are the newest host compilers that its toolkit accepts, if the file changes that.
    """

    id: JobId
    stage: Stage
    stage_revision: int
    scope: JobScope
    recipe: str
    fingerprint: Digest
    inputs: tuple[Digest, ...] = ()
    settings: dict[str, Setting] = {}
    needs: Needs = Needs()
    source: Source | None = None
    compilers: dict[str, str] = {}

    @property
    def cell(self) -> str:
        """The identifier without its stage; for a package, `torch-2.14.0/…/cp312/wheel`."""
        return self.id.partition(":")[2]

    @property
    def label(self) -> str:
        """The project and its version: `torch-2.14.0`."""
        return self.cell.partition("/")[0]

    @property
    def payload(self) -> Payload:
        """Return everything that the fingerprint covers."""
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
        """Whether the fingerprint and the identifier match the task's content."""
        named = job_identifier(self.stage, self.label, self.scope) == self.id
        return named and fingerprint(self.payload) == self.fingerprint

    @property
    def facts(self) -> dict[str, str]:
        """Return the fields of the job's scope by name, for steps."""
        name, _, version = self.label.rpartition("-")
        fields = scope_of(self.stage, self.scope)
        names = ("channel",) if self.stage is Stage.PUBLISH else tuple(FACTS)
        return {"name": name, "version": version, **dict(zip(names, fields, strict=False))}

    def text(self, name: str) -> str:
        """Return a string setting; empty if it is not set."""
        value = self.settings.get(name, "")
        return value if isinstance(value, str) else ""

    def words(self, name: str) -> list[str]:
        """Return a list of strings; empty if it is not set."""
        value = self.settings.get(name, ())
        return [word for word in value if isinstance(word, str)] if isinstance(value, tuple) else []

    def table(self, name: str) -> dict[str, str]:
        """Return a table; empty if it is not set."""
        value = self.settings.get(name, {})
        return value if isinstance(value, dict) else {}


_DIGITS = 16
_COMMIT_DIGITS = 40


def short_name(stage: str, fingerprint: str) -> str:
    """Return the name of a job for files and directories."""
    return f"{stage}-{fingerprint[:_DIGITS]}"


class JobSpec(Value, kw_only=True):
    """A task after all its dependencies, in topological order."""

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
        """The commit or digest of the job's source; empty if unknown."""
        keys = ("commit", "digest", "sha256")
        sources = (task for task in self.tasks if task.stage is Stage.SOURCE)
        names = (name for task in sources for name in map(task.text, keys) if name)
        return next(names, "")[:_COMMIT_DIGITS]

    @property
    def is_true(self) -> bool:
        """Whether the fingerprints of all tasks match their content."""
        return all(task.is_true for task in self.tasks)

    @property
    def is_whole(self) -> bool:
        """Whether it has all tasks that its tasks depend on; that of a publish job has not."""
        known = {task.fingerprint for task in self.tasks}
        return all(known.issuperset(task.inputs) for task in self.tasks)

    @property
    def anywhere(self) -> str:
        """The task's fingerprint without the identities of a toolchain."""
        renewed: dict[str, str] = {}
        for task in self.tasks:
            inputs = sorted(renewed.get(i, i) for i in task.inputs)
            settings = task.settings
            if "identity" in settings:
                settings = {**settings, "identity": {}}
            payload = replace(task.payload, inputs=inputs, settings=settings)
            renewed[task.fingerprint] = fingerprint(payload)
        return renewed[self.task.fingerprint]

    def of(self, task: Task) -> "JobSpec":
        """Return the job spec of a task that this one depends on."""
        needed = {task.fingerprint}
        kept = []
        for other in reversed(self.tasks):
            if other.fingerprint in needed:
                kept.append(other)
                needed.update(other.inputs)
        return JobSpec(tasks=tuple(reversed(kept)), sandbox=self.sandbox)
