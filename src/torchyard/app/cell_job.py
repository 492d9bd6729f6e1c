"""The job that compiles one cell of a file for its Python, for people who work on that cell."""

from collections.abc import Sequence
from typing import NamedTuple

from torchyard.app.toolchain_id import with_toolchain_id
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
from torchyard.plan.select import PlanSelection, cell_matches, matching_cells
from torchyard.recipes import compiles_by_recipe

_LISTED = 8


class CellJob(NamedTuple):
    """The bindings job of a cell, and the config it comes from."""

    spec: JobSpec
    config: Config


def find_cell_job(file: str, selector: str | None, changes: Sequence[str] = ()) -> CellJob:
    """Return the job that compiles a cell of this machine for its Python.

    A selector is one as `build` takes it, or the end of a path, such as `cpu-mkl/cp312`; without
    one, the file must have one such job only. Packages of one Python share it.

    Raises:
        SelectionError: No cell of this machine fits, or cells of several Pythons or blocks do.
        ConfigError: The file has steps of its own for it, and so no toolchain.
    """
    config = load_config(file, tuple(changes))
    path = _choose(config, selector)
    config = with_toolchain_id(config, file)
    plan = make_plan(config, PlanSelection(select=(f"{config.project.label}/{path}/*",)))
    spec = make_job_spec(plan, plan.find(Stage.BINDINGS, path))
    if not compiles_by_recipe(spec.task):
        msg = f"{spec.task.id} is made by steps of the file, and not by a toolchain of torchyard"
        raise ConfigError(msg, hint=f"`torchyard shell {spec.task.id}` shows what they see")
    return CellJob(spec, config)


def _choose(config: Config, selector: str | None) -> str:
    """Return the path of the one Python of a block that a selector means."""
    expansion, label, machine = expand(config), config.project.label, platform_name()
    cells = [
        cell
        for cell in matching_cells(expansion, PlanSelection())
        if cell.platform == machine and cell.python != ANY_PYTHON
    ]
    paths = list(dict.fromkeys(scope_path(cell[:4]) for cell in cells))
    if not paths:
        msg = f"the file has no cell that is compiled for a Python on {machine}, this machine"
        raise SelectionError(msg, hint="`torchyard plan --identifiers` lists what there is")
    found = paths
    if selector is not None:
        fitting = [cell for cell in cells if cell_matches(cell, label, selector)]
        found = list(dict.fromkeys(scope_path(cell[:4]) for cell in fitting))
        found = found or [path for path in paths if f"{label}/{path}".endswith(f"/{selector}")]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(_short(path) for path in (found or paths)[:_LISTED])
    listed += ", …" if len(found or paths) > _LISTED else ""
    if not found:
        msg = f"`{selector}` matches no cell of {machine}; there are {listed}"
    else:
        what = f"`{selector}` matches" if selector is not None else "the file has"
        msg = f"{what} {len(found)} environments: {listed}"
    raise SelectionError(msg, hint=f"name one of them, such as {_short((found or paths)[0])}")


def _short(path: str) -> str:
    """Return a path without its platform, which is always this machine's."""
    return path.partition("/")[2]
