"""What to build: the value that every command about a build takes."""

from collections.abc import Sequence
from pathlib import Path

from torchyard.engines.engine import Engine
from torchyard.model.config import Config
from torchyard.model.lock import BuildLock
from torchyard.model.values import Value
from torchyard.plan.graph import Plan
from torchyard.store.store import Store
from torchyard.workspace.locations import open_store
from torchyard.workspace.plan import plan_packages


class BuildRequest(Value):
    """Which packages of a file to build, and how."""

    file: str = "torchyard.toml"
    """The configuration."""
    changes: Sequence[str] = ()
    """Changes to the file, each as `KEY=VALUE`."""
    subset: str | None = None
    """A named part of the matrix."""
    select: Sequence[str] = ()
    """Words of a selector: values (`cu130`), cells or jobs (`core:*`); none selects all."""
    skip: Sequence[str] = ()
    """Selectors of cells and jobs to leave out."""
    store: str | None = None
    """Address or directory of a store, instead of the file's."""
    engine: Engine | None = None
    """Where jobs run; by default on this machine, with `LocalEngine()`."""
    keep_going: bool = False
    """After a failure, run all jobs that do not need the failed one."""
    output: str | Path | None = None
    """Directory to copy the packages to when all are built."""
    lock: BuildLock | None = None
    """Build environments of an extension, instead of the file's lock."""

    def plan(self) -> Plan:
        """Return the plan of the build."""
        return plan_packages(
            self.file,
            changes=self.changes,
            subset=self.subset,
            select=self.select,
            skip=self.skip,
            lock=self.lock,
        )

    def open_store(self, config: Config) -> Store:
        """Return the store of the results."""
        return open_store(self.store, self.file, config)
