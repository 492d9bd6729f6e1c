"""What is to be built: the one value that every command about a build takes."""

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
    """The packages of a file that are to be built, and how."""

    file: str = "torchyard.toml"
    """The configuration."""
    changes: Sequence[str] = ()
    """Changes of it, each as `KEY=VALUE`."""
    subset: str | None = None
    """A named part of the matrix."""
    select: Sequence[str] = ()
    """Words of a selector: values (`cu130`), cells or jobs (`core:*`); all without any."""
    skip: Sequence[str] = ()
    """Selectors of what to leave out."""
    store: str | None = None
    """Address or directory of a store, in place of the file's."""
    engine: Engine | None = None
    """Where jobs run; `LocalEngine()`, on this machine, unless another one is given."""
    keep_going: bool = False
    """After a failure, do all that does not need the failed job."""
    output: str | Path | None = None
    """Directory to put the packages into when all are built."""
    lock: BuildLock | None = None
    """What an extension is built with, in place of the file's lock."""

    def plan(self) -> Plan:
        """Return the plan of what is to be built."""
        return plan_packages(
            self.file,
            changes=self.changes,
            subset=self.subset,
            select=self.select,
            skip=self.skip,
            lock=self.lock,
        )

    def open_store(self, config: Config) -> Store:
        """Return the store that has the results."""
        return open_store(self.store, self.file, config)
