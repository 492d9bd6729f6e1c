"""Results of a plan in a store, laid out for a publication as a publish job has them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from torchyard.model.config import ChannelConfig, Config
from torchyard.workspace.locations import home_directory, open_store

if TYPE_CHECKING:
    from torchyard.model.result import Result
    from torchyard.publish.plan_results import PlanResults


class ResultSource(NamedTuple):
    """Which results are wanted: those of a channel's plan, in a store or else the file's."""

    config: Config
    channel: ChannelConfig
    file: str
    store: str | None


@contextmanager
def stored_results(source: ResultSource, *, packages: bool) -> Iterator["PlanResults | None"]:
    """Lay out the reports of a plan's jobs, and the packages if these are wanted, for a while.

    If they are not, None stands for a machine without the store, or without the toolchain that
    fingerprints contain: then nothing is known of the plan's jobs.
    """
    from torchyard.errors import TorchyardError
    from torchyard.model.recipe import CELL_STAGES, Stage
    from torchyard.publish.plan_results import PlanResults
    from torchyard.recipes.publishing import CONFINED, input_place, is_confined
    from torchyard.store.trees import fetch_tree
    from torchyard.workspace.channel_config import plan_channel
    from torchyard.workspace.toolchain_id import with_toolchain_id

    try:
        store = open_store(source.store, source.file, source.config, make=False)
        plan = plan_channel(with_toolchain_id(source.config, source.file), source.channel)
    except TorchyardError:
        if packages:
            raise
        yield None
        return
    names = [job.fingerprint for job in plan.jobs if job.stage in CELL_STAGES]
    home = Path(home_directory(source.file))
    home.mkdir(parents=True, exist_ok=True)
    made: dict[str, str] = {}
    confined: list[str] = []
    with TemporaryDirectory(prefix="publish-", dir=home) as folder:
        for result in store.results(names):
            task = result.spec.task
            if task.stage is Stage.PACKAGE:
                made.update(_packages_of(result))
                if source.channel.sandbox == "required" and is_confined(result, store):
                    confined.append(task.cell)
            if packages or task.stage is not Stage.PACKAGE:
                place = Path(folder, input_place(task))
                place.mkdir(parents=True)
                fetch_tree(store, result.tree, place)
        Path(folder, CONFINED).write_text("\n".join(confined), encoding="utf-8")
        yield PlanResults(Path(folder), plan.label, made)


def _packages_of(result: "Result") -> dict[str, str]:
    """Return the cell of a package job's result by the sha256 of its packages."""
    from torchyard.package.delivered import is_package_name

    cell = result.spec.task.cell
    top = (file for file in result.tree.files if "/" not in file.path)
    return {file.digest: cell for file in top if is_package_name(file.path)}
