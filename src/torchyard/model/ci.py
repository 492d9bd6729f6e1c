"""The settings of generated CI, `[ci]`. They are part of no fingerprint."""

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
"""When a user's hook runs: before all jobs, before publishing, or at the end."""


class CiRunner(Value, kw_only=True):
    """The machines for some jobs, by the provider's labels.

    `prepare` are the user's commands to run first on such a machine.
    """

    labels: tuple[str, ...]
    pattern: Pattern = Pattern()
    stages: tuple[Stage, ...] = ()
    capabilities: tuple[str, ...] = ()
    image: str = ""
    prepare: tuple[str, ...] = ()


class CiHook(Value, kw_only=True):
    """A user's reusable workflow, or file with jobs, and when it runs."""

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
        """Whether a newer commit of the same branch cancels its runs."""
        return self.channel is None and CiEvent.PULL_REQUEST in self.on


class RefreshRule(Value, kw_only=True):
    """How many of the newest torch releases and Pythons a matrix has; 0 disables the refresh."""

    torch: int = 0
    python: int = 0


class CiSettings(Value, kw_only=True):
    """The table `[ci]`."""

    providers: tuple[str, ...] = ()
    install: str = ""
    python: str = ""
    time_limit: int | None = None
    runners: tuple[CiRunner, ...] = ()
    pipelines: dict[str, CiPipeline] = {}
    actions: dict[str, str] = {}
    refresh: RefreshRule = RefreshRule()
