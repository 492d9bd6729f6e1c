"""Make the package of a job spec."""

from pathlib import Path

import msgspec

from torchyard.errors import BuildError
from torchyard.model.job_spec import JobSpec
from torchyard.model.recipe import Stage
from torchyard.model.recipe_output import RECIPE_CHANNELS
from torchyard.package.format import PackageBuild
from torchyard.package.formats import FORMATS
from torchyard.package.sbom.bill import bill_of
from torchyard.recipes.tools.conda import built_packages
from torchyard.terminal.console import write


def pack(spec: Path, inputs: Path, scratch: Path, out: Path) -> list[Path]:
    """Make the package of the job spec in a file; return the written files."""
    asked = msgspec.json.decode(spec.read_bytes(), type=JobSpec)
    form = FORMATS.get(asked.task.text("format"))
    if form is None:
        msg = f"no package of format `{asked.task.text('format')}` can be written"
        raise BuildError(msg)
    return form.pack(_build(asked, spec, inputs, scratch=scratch, out=out))


def pack_beside(spec: Path, inputs: Path, scratch: Path, out: Path) -> list[Path]:
    """Make the companion packages required by a job spec's package; return their files."""
    asked = msgspec.json.decode(spec.read_bytes(), type=JobSpec)
    if RECIPE_CHANNELS in asked.task.settings:
        own = {path.name for path in (inputs / Stage.PACKAGE).iterdir()}
        return [path for path in built_packages(inputs) if path.name not in own]
    package = next(task for task in asked.tasks if task.stage is Stage.PACKAGE)
    form = FORMATS.get(package.text("format"))
    if form is None or all(task.stage is not Stage.CORE for task in asked.tasks):
        return []  # companions are made of the core
    return form.pack_companions(_build(asked.of(package), spec, inputs, scratch=scratch, out=out))


def _build(spec: JobSpec, carried: Path, inputs: Path, *, scratch: Path, out: Path) -> PackageBuild:
    bill = bill_of(spec, inputs)
    return PackageBuild(spec, carried, bill, spec.compiled, spec.commit, inputs, scratch, out)


def pack_tool(*, spec: Path, inputs: Path, scratch: Path, to: Path) -> None:
    """Make a package from build results."""
    for path in pack(spec, inputs, scratch, to):
        write(f"{path.name}\n")
