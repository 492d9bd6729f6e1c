"""The job that compiles a cell for its Python, for development of that cell."""

from collections.abc import Sequence
from typing import NamedTuple

from torchyard.config.load import load_config
from torchyard.errors import ConfigError, SelectionError
from torchyard.host.machine import platform_name
from torchyard.model.config import Config
from torchyard.model.identifier import ANY_PYTHON, scope_path
from torchyard.model.job_spec import JobSpec
from torchyard.model.recipe import Stage
from torchyard.plan.build import make_plan
from torchyard.plan.expand import expand
from torchyard.plan.job_specs import make_job_spec
from torchyard.plan.select import PlanSelection, ReadSelection
from torchyard.recipes import compiles_by_recipe
from torchyard.workspace.toolchain_id import with_toolchain_id

_LISTED = 8


class CellJob(NamedTuple):
    """The bindings job of a cell, and its config."""

    spec: JobSpec
    config: Config


def find_cell_job(file: str, words: Sequence[str] = (), changes: Sequence[str] = ()) -> CellJob:
    """Return the job that compiles a cell of this machine for its Python.

    `words` are a selector; without them, the file must have exactly one such job, which packages
    of one Python share.

    Raises:
        SelectionError: No cell of this machine fits, or several with different Pythons or blocks.
        ConfigError: The file's own steps make the cell, without torchyard's toolchain.
    """
    config = load_config(file, tuple(changes))
    path = _choose(config, words)
    config = with_toolchain_id(config, file)
    plan = make_plan(config, PlanSelection(select=(f"{config.project.label}/{path}/*",)))
    spec = make_job_spec(plan, plan.find(Stage.BINDINGS, path))
    if not compiles_by_recipe(spec.task):
        msg = f"{spec.task.id} is made by steps of the file, without a toolchain of torchyard"
        raise ConfigError(msg, hint=f"`torchyard shell {spec.task.id}` shows what they see")
    return CellJob(spec, config)


def _choose(config: Config, words: Sequence[str]) -> str:
    """Return the path of the only selected Python of a block."""
    machine = platform_name()
    cells = ReadSelection(expand(config), PlanSelection(select=tuple(words))).cells()
    here = [cell for cell in cells if cell.platform == machine and cell.python != ANY_PYTHON]
    found = {scope_path(cell[:4]): cell for cell in here}
    if len(found) == 1:
        return next(iter(found))
    what = f"`{' '.join(words)}`" if words else "the file"
    if not found:
        msg = f"{what} has no cell that is compiled for a Python on {machine}, this machine"
        raise SelectionError(msg, hint="`torchyard plan --list cells` lists all cells")
    listed = ", ".join(path.partition("/")[2] for path in [*found][:_LISTED])
    listed += ", …" if len(found) > _LISTED else ""
    msg = f"{what} has {len(found)} environments: {listed}"
    columns = [dict.fromkeys(column) for column in zip(*(cell[:4] for cell in here), strict=True)]
    narrow = "; and ".join(" or ".join(values) for values in columns if len(values) > 1)
    raise SelectionError(msg, hint=f"add a word: {narrow}")
