"""Tools for jobs of recipe `conda`."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, cast

from torchyard.errors import BuildError, HostError
from torchyard.host.files import link_or_copy
from torchyard.model.job_spec import JobSpec
from torchyard.model.recipe import Stage
from torchyard.package.conda.name import SUFFIX
from torchyard.terminal.console import write
from torchyard.toolchain.conda_lock import USER, channel_address
from torchyard.toolchain.conda_packages import use_packages
from torchyard.toolchain.conda_recipe import output_name, render_recipe
from torchyard.toolchain.rattler import call_rattler

if TYPE_CHECKING:
    from rattler_build.progress import LogEvent, ProgressCallback

_SCRIPT, _SOLVER = "Script failed", "Failed to resolve"
"""What rattler-build says of a script of the recipe, and of an environment without a solution."""
_SPECS, _SPEC = "  Specs:", "   - "
"""Lines of rattler-build's log before it solves an environment."""
_CHANNEL = "channel"
"""The folder of a build's result with its packages."""


class _Log:
    """Writes what rattler-build and the scripts of a recipe say."""

    def on_log(self, event: "LogEvent") -> None:
        write(f"{event.message.rstrip()}\n")


def build_recipe_tool(
    *,
    spec: JobSpec,
    inputs: Path,
    channel: tuple[str, ...] = (),
    packages: Path | None = None,
    to: Path,
) -> None:
    """Build the outputs of a recipe that a job is for, with the packages of its inputs."""
    from rattler_build import RattlerBuildError, ToolConfiguration  # noqa: PLC0415 - an extra

    task = spec.task
    _check_version(task.text("rattler_build"))
    output = Path("output").absolute()
    for package in built_packages(inputs):
        _put(package, output / package.parent.name)
    if packages and packages.is_dir():
        use_packages(packages, Path("cache").absolute())
    channels, config = [*map(channel_address, channel)], ToolConfiguration()
    log = cast("ProgressCallback", _Log())  # all of its methods are optional
    source = inputs / Stage.SOURCE
    for rendered in render_recipe(source, task.text("subdir"), task.table("outputs")):
        name = output_name(rendered)
        write(f"== {name.file}\n")
        try:
            made = rendered.run_build(
                config, output, channels, log, no_build_id=True, package_format="conda"
            )
        except RattlerBuildError as error:
            if _SCRIPT in str(error):
                sys.exit(1)  # the cause is further up, as in the log of any program
            if _SOLVER in str(error):
                write(_unsolved(getattr(error, "log", ()), [output.as_uri(), *channels]))
            msg = f"rattler-build could not build {name.file}: {error}"
            raise BuildError(msg) from error
        for path in made.packages:
            _put(path, to / _CHANNEL / path.parent.name)


def _unsolved(log: Sequence[str], channels: Sequence[str]) -> str:
    """Return why the last requirements in a log have no solution, which rattler-build omits."""
    specs: list[str] = []
    for line in log:
        is_spec = line.startswith(_SPEC)
        specs = [*specs, line.removeprefix(_SPEC)] if is_spec else [] if _SPECS in line else specs
    asked = {"channels": [*channels], "specs": specs, "prefix": "", "system": {}, "exact": False}
    with suppress(HostError):
        return call_rattler("install", asked | {"cache": str(Path("cache").absolute())}, USER).error
    return ""


def take_output_tool(*, spec: JobSpec, inputs: Path, to: Path) -> None:
    """Take the package of a cell from the build of its variant."""
    ((name, found),) = spec.task.table("outputs").items()
    packages = [p for p in built_packages(inputs) if p.name == f"{name}-{found}{SUFFIX}"]
    if not packages:
        msg = f"the recipe made no package {name}-{found}"
        raise BuildError(msg, hint="the recipe is rendered in another way here: plan it again")
    _put(packages[0], to)


def built_packages(inputs: Path) -> list[Path]:
    """Return the packages of all builds of a recipe in a job's inputs; they are in subdirs."""
    return [
        path
        for stage in (Stage.CORE, Stage.BINDINGS)
        for scope in ("", "*/*/", "*/*/*/")  # one result of the stage, or that of each scope
        for path in sorted((inputs / stage).glob(f"{scope}{_CHANNEL}/*/*{SUFFIX}"))
    ]


def _put(package: Path, folder: Path) -> None:
    """Put a package into a folder, also if a run that was killed did so."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / package.name).unlink(missing_ok=True)
    link_or_copy(str(package), str(folder / package.name))


def _check_version(planned: str) -> None:
    found = version("py-rattler-build")
    if found != planned:
        msg = f"the job is for py-rattler-build {planned}, and this machine has {found}"
        raise BuildError(msg, hint=f"pip install py-rattler-build=={planned}")
