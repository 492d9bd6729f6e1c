"""Results of a plan in a store, laid out for a publication as a publish job has them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.errors import TorchyardError
from torchyard.model.config import ChannelConfig, Config
from torchyard.model.recipe import CELL_STAGES, Stage
from torchyard.model.result import Result
from torchyard.package.delivered import is_package_name
from torchyard.publish.plan_results import PlanResults
from torchyard.recipes.publishing import CONFINED, input_place, is_confined
from torchyard.store.trees import fetch_tree
from torchyard.workspace.channel_config import plan_channel
from torchyard.workspace.locations import made_home, open_store
from torchyard.workspace.toolchain_id import with_toolchain_id


@contextmanager
def stored_results(
    config: Config, channel: ChannelConfig, file: str, store_url: str | None, *, packages: bool
) -> Iterator[PlanResults | None]:
    """Lay out the reports of a plan's jobs, and the packages if these are wanted, for a while.

    If they are not, None stands for a machine without the store, or without the toolchain that
    fingerprints contain: then nothing is known of the plan's jobs.
    """
    try:
        store = open_store(store_url, file, config, make=False)
        plan = plan_channel(with_toolchain_id(config, file), channel)
    except TorchyardError:
        if packages:
            raise
        yield None
        return
    names = [job.fingerprint for job in plan.jobs if job.stage in CELL_STAGES]
    made: dict[str, str] = {}
    confined: list[str] = []
    with TemporaryDirectory(prefix="publish-", dir=made_home(file)) as folder:
        for result in store.results(names):
            task = result.spec.task
            if task.stage is Stage.PACKAGE:
                made.update(_packages_of(result))
                if channel.sandbox == "required" and is_confined(result, store):
                    confined.append(task.cell)
            if packages or task.stage is not Stage.PACKAGE:
                home = Path(folder, input_place(task))
                home.mkdir(parents=True)
                fetch_tree(store, result.tree, home)
        Path(folder, CONFINED).write_text("\n".join(confined), encoding="utf-8")
        yield PlanResults(Path(folder), plan.label, made)


def _packages_of(result: Result) -> dict[str, str]:
    """Return the cell of a package job's result by the sha256 of its packages."""
    cell = result.spec.task.cell
    top = (file for file in result.tree.files if "/" not in file.path)
    return {file.digest: cell for file in top if is_package_name(file.path)}
