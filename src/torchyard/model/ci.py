"""The settings of generated CI: what `[ci]` says. They are no part of any fingerprint."""

from enum import StrEnum
from typing import Literal

from torchyard.model.matrix import Pattern
from torchyard.model.recipe import Stage
from torchyard.model.values import Value


class CiEvent(StrEnum):
    """What starts a pipeline."""

    PULL_REQUEST = "pull-request"
    PUSH = "push"
    TAG = "tag"
    SCHEDULE = "schedule"
    MANUAL = "manual"


HookPoint = Literal["before", "after-build", "after-publish"]
"""When a job of the user's own runs: before all others, before publishing, or at the end."""


class CiRunner(Value, kw_only=True):
    """The machines for some jobs, by the labels that the provider knows them under.

    `prepare` are commands of the user's own that such a machine needs first.
    """

    labels: tuple[str, ...]
    pattern: Pattern = Pattern()
    stages: tuple[Stage, ...] = ()
    capabilities: tuple[str, ...] = ()
    image: str = ""
    prepare: tuple[str, ...] = ()


class CiHook(Value, kw_only=True):
    """A reusable workflow, or file with jobs, of the user's own, and when it runs."""

    name: str
    at: HookPoint
    uses: str
    permissions: dict[str, str] = {}


class CiPipeline(Value, kw_only=True):
    """When a part of the matrix is built, and where it is published."""

    name: str
    title: str = ""
    on: tuple[CiEvent, ...]
    subset: str | None = None
    cron: str = ""
    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    label: str = ""
    channel: str | None = None
    environment: str = ""
    role: str = ""
    region: str = ""
    hooks: tuple[CiHook, ...] = ()
    all_jobs: bool = False
    store: str = ""

    @property
    def is_narrowed(self) -> bool:
        """Whether pull requests run only the jobs that their changes affect."""
        return CiEvent.PULL_REQUEST in self.on and not self.all_jobs

    @property
    def is_superseded(self) -> bool:
        """Whether a newer commit of the same branch makes a run of it pointless."""
        return self.channel is None and CiEvent.PULL_REQUEST in self.on


class RefreshRule(Value, kw_only=True):
    """How many of the newest torch releases and Pythons a matrix has; 0: it is not refreshed."""

    torch: int = 0
    python: int = 0


class CiSettings(Value, kw_only=True):
    """Everything that `[ci]` says."""

    providers: tuple[str, ...] = ()
    install: str = ""
    python: str = ""
    time_limit: int | None = None
    runners: tuple[CiRunner, ...] = ()
    pipelines: dict[str, CiPipeline] = {}
    actions: dict[str, str] = {}
    refresh: RefreshRule = RefreshRule()
