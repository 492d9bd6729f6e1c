"""Recipe `extension`: a project that is compiled against a torch release.

A bindings job makes a wheel with the project's backend, in an environment with exactly the torch
of its cell. A package job adds the label and metadata: what the wheel fits, and what it requires.
"""

import re

from msgspec.structs import replace

from torchyard.compute.registry import platform_for
from torchyard.errors import PlanError
from torchyard.insight.static_links import LINKS
from torchyard.model.job_spec import JobSpec
from torchyard.model.recipe import Stage
from torchyard.model.step import SHELL, Step
from torchyard.recipes.recipe import inventory_step, lay_out_step, promise_steps, tool

_LAY_OUT = """\
find . -mindepth 1 -delete
cp -a {source}/. .
rm -rf .torchyard-downloads
[ ! -d {work}/objects ] || cp -a {work}/objects/. ."""
_BUILD = "project-wheel --python {work}/env/bin/python --source {source} --to {work}/tmp/dist"
_UNPACK = "unpack {work}/tmp/dist --to {out}/image"
_COLLECT = "collect-extension {out}/image --environment {work}/env --to {out}/vendor"
_INVENTORY = f"--vendor {{out}}/vendor --links {{work}}/tmp/{LINKS}"
_COMPILED_MODULES = {"PYTHONPYCACHEPREFIX": "{work}/modules", "PYTHONDONTWRITEBYTECODE": ""}
_PACK = "pack --spec {spec} --inputs {inputs} --scratch {build} --to {out}"


def steps(spec: JobSpec) -> tuple[Step, ...] | None:
    """Return the steps of a job, or None if this recipe has none for its stage."""
    match spec.task.stage:
        case Stage.BINDINGS:
            return _bindings(spec)
        case Stage.PACKAGE:
            return (tool(_PACK, "make the package"),)
        case _:
            return None


def _bindings(spec: JobSpec) -> tuple[Step, ...]:
    task = spec.task
    if "toolchain" not in task.settings:
        msg = f"nothing says with what {task.id} is compiled"
        hint = "add [toolchain] to the file; `torchyard toolchain` lists compilers"
        raise PlanError(msg, hint=hint)
    if not task.words("requires"):
        msg = f"torchyard.lock does not say with which torch {task.id} is built"
        raise PlanError(msg, hint="run `torchyard lock`")
    return (
        lay_out_step(_LAY_OUT),
        *(Step(run=(*SHELL, line)) for line in task.words("prepare")),
        _build(platform_for(task.facts["compute"]).wheel_folders),
        tool(_UNPACK, "take it apart"),
        tool(_COLLECT, "collect what it needs"),
        inventory_step("{out}/image", _INVENTORY),
        *promise_steps(spec, "{out}/image", "{out}/vendor"),
    )


def environment(spec: JobSpec) -> dict[str, str]:
    """Return the variables of the project's build: its known ones, and the file's.

    `{archs}` in them stands for the architectures of the cell, as `9.0;10.0`, `{sms}` for `90;100`,
    `{sms,}` for `90,100`.
    """
    archs = ";".join(spec.compiled.words("archs"))
    sms = archs.replace(".", "")
    given = {"{archs}": archs, "{sms}": sms, "{sms,}": sms.replace(";", ",")}
    return {
        name: re.sub(r"\{(archs|sms,?)\}", lambda found: given[found[0]], value)
        for name, value in spec.compiled.table("env").items()
    }


def _build(wheel_folders: str) -> Step:
    """Return the step that runs the project's backend, with libraries in these folders."""
    libraries = f" --libraries {wheel_folders}" if wheel_folders else ""
    step = tool(f"{_BUILD}{libraries}", "make the project's own wheel")
    return replace(step, env=_COMPILED_MODULES)
