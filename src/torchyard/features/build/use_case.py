"""Build the wheel of an extension that fits the caller's environment."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace
from packaging.utils import canonicalize_name

from torchyard.compute.installed_torch import (
    PythonEnvironment,
    active_python,
    read_environment,
)
from torchyard.compute.registry import PLAIN
from torchyard.config.load import load_config
from torchyard.errors import ConfigError, HostError, SelectionError
from torchyard.host.machine import platform_name
from torchyard.model.config import Config
from torchyard.model.event import Listener
from torchyard.model.identifier import Cell, fits_identifier, scope_path
from torchyard.model.lock import BuildLock
from torchyard.model.recipe import Dimension
from torchyard.model.tables import TORCH_PREFIX
from torchyard.package.wheel.metadata import NAME
from torchyard.package.wheel.name import is_wheel_name
from torchyard.plan.expand import expand
from torchyard.toolchain.environment_lock import TORCH, lock_target, resolve_environment
from torchyard.workspace.build import PreparedBuild, prepare_build
from torchyard.workspace.build_request import BuildRequest
from torchyard.workspace.locations import home_directory
from torchyard.workspace.lock import project_requirements

_OUTPUT = "here"


class HereBuild(NamedTuple):
    """A build for an environment."""

    environment: PythonEnvironment
    build: PreparedBuild

    def deliver(self) -> Path:
        """Copy the wheel to the output directory, and return its path."""
        return next(path for path in self.build.deliver() if is_wheel_name(path.name))


def install_command(environment: PythonEnvironment, wheel: Path) -> str:
    """Return the command that installs a wheel, even over one of the same version."""
    name, version = wheel.name.split("-")[:2]
    words, again = ["uv", "pip", "install", "--python", environment.executable], "--reinstall"
    if "pip" in environment.versions:
        words, again = [environment.executable, "-m", "pip", "install"], "--force-reinstall"
    if environment.versions.get(canonicalize_name(name)) == version:
        words += [again, "--no-deps"]
    return shlex.join([*words, str(wheel)])


def prepare_here(
    request: BuildRequest,
    *,
    listeners: Iterable[Listener] = (),
    say: Callable[[str], object] = lambda _: None,
) -> HereBuild:
    """Plan the build of the cell that fits the torch, Python and GPU library of an environment.

    It is built against exactly that torch, regardless of the lock, which is not changed.

    Raises:
        SelectionError: The matrix has no such cell.
        HostError: There is no environment, it has no torch, or no index has its torch.
    """
    environment = read_environment(active_python())
    config = load_config(request.file, request.changes)
    cell = find_cell(config, environment)
    about = f"torch {_torch_version(environment)}, {environment.python}: {scope_path(cell[:4])}"
    say(f"{environment.executable} has {about}")
    lock = config.lock
    if lock.versions(scope_path(cell[:4])).get(TORCH) != _torch_version(environment):
        requires = project_requirements(request.file, changes=request.changes, listeners=listeners)
        lock = _with_torch(config, cell, environment, requires)
    output = request.output or Path(home_directory(request.file), _OUTPUT)
    select = (f"{config.project.label}/{cell.path}",)
    build = prepare_build(replace(request, select=select, output=output, lock=lock))
    return HereBuild(environment, build)


def find_cell(config: Config, environment: PythonEnvironment) -> Cell:
    """Return the cell whose wheel fits an environment."""
    recipe, torch = config.project.recipe, environment.torch
    if not recipe.is_extension:
        msg = f"recipe `{recipe.name}` builds torch itself, not a wheel for an installed one"
        raise ConfigError(msg, hint="name a cell: `torchyard plan --list cells` lists them")
    if torch is None:
        msg = f"`{environment.executable}` has no torch"
        hint = "activate an environment with torch, or install it: `pip install torch`"
        raise HostError(msg, hint=hint)
    kinds = config.tables.packages
    cells = [cell for cell in expand(config).cells if kinds[cell.package].format == NAME]
    if not cells:
        msg = "the file has no wheels"
        raise SelectionError(msg, hint=f'add "{NAME}" to `package` in [matrix]')
    machine, release = platform_name(), f"{TORCH_PREFIX}{torch.release}"
    cells = _only(cells, "platform", {machine}, f"this machine is {machine}", "platform")
    cells = _only(cells, "variant", {release}, f"the environment has torch {torch.label}", "torch")
    python, compute = environment.python, torch.compute
    cells = _only(cells, "python", {python}, f"the environment has Python {python}", "python")
    fitting = [cell for cell in cells if cell.compute == compute]
    what = f"the environment's torch is for {compute}"
    return (fitting or _only(cells, "compute", {compute, PLAIN}, what, "compute"))[0]


def _only(
    cells: Sequence[Cell], field: str, wanted: set[str], what: str, dimension: str
) -> list[Cell]:
    """Return the cells with one of these values, or fail with the needed change."""
    found = [cell for cell in cells if getattr(cell, field) in wanted]
    if not found:
        there = dict.fromkeys(getattr(cell, field) for cell in cells)
        msg = f"{what}, and the file has no cell for that, but for {', '.join(there) or 'none'}"
        known = [name for name in sorted(wanted - {PLAIN}) if fits_identifier(name)]
        names = ", ".join(f'"{name}"' for name in known or wanted & {PLAIN})
        lock = ", and run `torchyard lock`" if dimension == Dimension.TORCH else ""
        raise SelectionError(msg, hint=f"add {names} to `{dimension}` in [matrix]{lock}")
    return found


def _torch_version(environment: PythonEnvironment) -> str:
    """Return the version of its torch in an index: PyPI's has no local part."""
    label = environment.torch.label if environment.torch else ""
    return environment.versions.get(TORCH) or label


def _with_torch(
    config: Config, cell: Cell, environment: PythonEnvironment, requires: Sequence[str]
) -> BuildLock:
    """Return the lock with an environment for a cell with exactly this torch."""
    version = _torch_version(environment)
    target = lock_target(config.tables, cell.platform, cell.python)
    try:
        made = resolve_environment([*requires, f"{TORCH}==={version}"], target)
    except HostError as error:
        if error.reason:
            raise
        msg = f"the wheels to build against torch {version} were not found: {error}"
        hint = "uv's settings name the indexes: one of them must have exactly this torch"
        raise HostError(msg, hint=hint) from error
    lock = config.lock
    return replace(
        lock,
        environments={**lock.environments, scope_path(cell[:4]): tuple(sorted(made.files))},
        files={**lock.files, **made.files},
    )
