"""Provide the toolchain of a recipe's steps in the job's directory, before the first step.

This happens outside of any sandbox, with the caller's network settings, so that steps need no
network.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from torchyard.compute.registry import compute_platforms, platform_for
from torchyard.config.tables import load_tables
from torchyard.errors import ConfigError, ElsewhereError, HostError
from torchyard.model.config import SandboxKind
from torchyard.model.event import Listener, Noted
from torchyard.model.identifier import ANY_PYTHON
from torchyard.model.job_spec import SPEC_FILE, JobSpec, Task
from torchyard.model.lock import CONDA
from torchyard.model.recipe import Stage
from torchyard.model.recipe_output import RECIPE_CHANNELS
from torchyard.model.toolchain import Toolchain, is_pinned
from torchyard.recipes import compiles_by_recipe, is_tried_by_us
from torchyard.recipes.proof import PUBLISHED
from torchyard.recipes.registry import recipe_module
from torchyard.run.conditions import Conditions
from torchyard.run.sandbox import tools_path, work_path
from torchyard.run.steps import StepContext
from torchyard.run.workdir import WorkDir

if TYPE_CHECKING:
    from torchyard.toolchain.digests import Digests
    from torchyard.toolchain.interpreters import Interpreter
    from torchyard.toolchain.provision import ToolchainLayout


_ARGUMENTS = "CMAKE_ARGS"
_WHEELS = "toolchain/wheels"
_NUMPY = re.compile(r"^(#|//) *needs:.*\bnumpy\b", re.MULTILINE)
"""The header of a test that needs numpy."""


def equip_job(
    workdir: WorkDir, sandbox: SandboxKind, conditions: Conditions, on_event: Listener
) -> Mapping[str, str]:
    """Provide the tools of a recipe's steps; return the variables that point to them.

    With a root, do this inside the root.
    """
    task = workdir.spec.task
    if RECIPE_CHANNELS in task.settings and task.stage is not Stage.SMOKE:
        _fetch_packages(workdir, conditions)
    if not is_tried_by_us(task) and not compiles_by_recipe(task):
        return {}
    root = conditions.sandbox.root
    if root is None:
        return equip_here(workdir, sandbox, conditions.cache, on_event)
    from torchyard.toolchain.root import ask_in_root  # noqa: PLC0415 - as below

    words, network = ["equip", workdir.folder.name], fetches_wheels(workdir.spec)
    answer = ask_in_root(root, words, folder=workdir.folder, network=network)
    return msgspec.json.decode(answer, type=dict[str, str])


def _fetch_packages(workdir: WorkDir, conditions: Conditions) -> None:
    """Fetch the packages that outputs of a conda recipe are built with, for a job of our own."""
    if conditions.foreign or conditions.demanded == "bwrap":
        return
    from torchyard.toolchain.conda_lock import find_channel  # noqa: PLC0415 - few jobs need it
    from torchyard.toolchain.conda_packages import fetch_packages  # noqa: PLC0415

    task, base = workdir.spec.task, Path(conditions.file).parent
    names = map(find_channel, task.words(RECIPE_CHANNELS))
    channels = [name if "://" in name else (base / name).resolve().as_uri() for name in names]
    source, wanted = workdir.inputs / Stage.SOURCE, task.table("outputs")
    fetch_packages(source, task.text("subdir"), wanted, channels)


def fetches_wheels(spec: JobSpec) -> bool:
    """Return whether the tools of a job are fetched, with the caller's settings and caches.

    Programs of a conda channel run meanwhile, which see none of these if no wheel is required.
    """
    has_conda = any(task.table(CONDA) for task in spec.tasks)
    return not has_conda or any(task.words("requires") for task in spec.tasks)


def equip_in_root(name: str) -> Mapping[str, str]:
    """Do the part of `equip_job` inside the root, for the job's directory of this name."""
    from torchyard.toolchain.root import FOLDERS  # noqa: PLC0415 - as below

    spec = msgspec.json.decode(Path(FOLDERS, name, SPEC_FILE).read_bytes(), type=JobSpec)
    workdir = WorkDir(Path(FOLDERS), spec, name)
    return equip_here(workdir, "bwrap", None, lambda _: None)


def equip_here(
    workdir: WorkDir,
    sandbox: SandboxKind,
    cache: str | None,
    on_event: Listener,
    also: Sequence[str] = (),
) -> Mapping[str, str]:
    """Provide the tools of a recipe's steps from the system that this process runs in.

    `also` are additional packages for the Python environment.
    """
    spec = workdir.spec
    if is_tried_by_us(spec.task):
        return _equip_smoke(workdir, tools_path(sandbox, workdir))
    # This import takes longer than many jobs that compile nothing.
    from torchyard.toolchain.digests import DIGESTS, Digests  # noqa: PLC0415
    from torchyard.toolchain.provision import ToolchainLayout  # noqa: PLC0415

    if spec.compiled.settings.get("cache"):
        # The bindings of a core compiled through a cache also need one, even an empty one.
        shared = sandbox == "view" and cache and _usable(cache, workdir, on_event)
        cache = shared or f"{work_path(sandbox, workdir)}/home/.cache"
    else:
        cache = None
    layout = ToolchainLayout(workdir.folder, tools_path(sandbox, workdir))
    return provide_toolchain(spec, layout, Digests(workdir.folder.parent / DIGESTS), cache, also)


def provide_toolchain(
    spec: JobSpec,
    layout: "ToolchainLayout",
    digests: "Digests",
    cache: str | None = None,
    also: Sequence[str] = (),
) -> dict[str, str]:
    """Install the compiling tools of a job, and return the variables that point to them.

    `also` are additional packages for the Python environment.
    """
    from torchyard.toolchain.provision import equip  # noqa: PLC0415 - as above

    core, tables = spec.compiled, load_tables()
    if core.settings.get(CONDA):
        return _from_conda(spec, layout, also)
    compute = core.facts["compute"]
    shipped = tables.compute.get(compute)
    tools = equip(
        core.table("identity"),
        toolchain=_toolchain(core, cache),
        compute=compute,
        source=platform_for(compute),
        blas=core.facts["variant"],
        archs=core.words("archs"),
        interpreter=_interpreter(spec.task),
        requires=(*core.words("requires"), *also),
        layout=layout,
        platforms=compute_platforms(),
        tables=tables,
        newest=core.compilers or (shipped.compilers if shipped else {}),
        digests=digests,
    )
    if cache and core.stage is Stage.BINDINGS:  # with any backend of the project
        from torchyard.toolchain.cache import stand_in  # noqa: PLC0415 - few jobs have one

        tools = stand_in(tools, layout.folder, layout.seen_as)
    return tools | recipe_module(core.recipe).environment(spec)


def _from_conda(spec: JobSpec, layout: "ToolchainLayout", also: Sequence[str]) -> dict[str, str]:
    """Return the variables of a job in conda environments, in whose root this runs."""
    from torchyard.toolchain.conda_root import equip_conda  # noqa: PLC0415 - few jobs have one

    core = spec.compiled
    tools = equip_conda(
        interpreter=_interpreter(spec.task),
        blas=core.facts["variant"],
        requires=(*core.words("requires"), *also),
        layout=layout,
        platforms=compute_platforms(),
    )
    own = recipe_module(core.recipe).environment(spec)
    arguments = " ".join(filter(None, (env.get(_ARGUMENTS, "") for env in (tools, own))))
    return tools | own | ({_ARGUMENTS: arguments} if arguments else {})


def _usable(cache: str, workdir: WorkDir, on_event: Listener) -> str | None:
    """Return the address of a cache, or None if it is unusable now."""
    from torchyard.toolchain.cache import is_usable  # noqa: PLC0415 - as above

    if is_usable(cache, workdir.folder):
        return cache
    text = f"compiles everything: the compile cache {cache} can't be used now"
    on_event(Noted(job=workdir.spec.task.id, text=text))
    return None


def _equip_smoke(workdir: WorkDir, seen_as: str) -> Mapping[str, str]:
    """Provide a wheel's Python and requirements, to test it without a network."""
    task = workdir.spec.task
    if PUBLISHED in task.settings:
        return _equip_visit(task)
    from torchyard.package.wheel.format import WheelFormat  # noqa: PLC0415 - as above

    wheels = sorted((workdir.inputs / Stage.PACKAGE).glob(f"*{WheelFormat.SUFFIXES[0]}"))
    if not wheels:
        return {}
    from torchyard.smoke.wheelhouse import (  # noqa: PLC0415 - as above
        WheelSources,
        gather,
        offline,
    )

    interpreter = _interpreter(task)
    numpy = task.facts["name"] == "torch" or any(map(_NUMPY.search, task.table("tests").values()))
    folder = workdir.folder / _WHEELS
    sources = WheelSources(_torch_of(workdir.spec), task.words("indexes"))
    gather(wheels, interpreter, folder, sources, numpy=numpy)
    return {"PATH": str(Path(interpreter.path).parent)} | offline(folder, f"{seen_as}/{_WHEELS}")


def _torch_of(spec: JobSpec) -> list[str]:
    """Return the requirement for a job's torch, or its extension's, with a hash."""
    pins = spec.task.words("requires") or spec.compiled.words("requires")
    for pin in pins:
        if not is_pinned(pin):
            msg = f"the job requires `{pin}`, which is not a single version of a package"
            raise ConfigError(msg, hint="plan the job again with torchyard")
    return [pin for pin in pins if pin.startswith("torch==")]


def _equip_visit(task: Task) -> Mapping[str, str]:
    """Provide the Python for a published wheel, unless it is for any Python."""
    from torchyard.package.wheel.format import WheelFormat  # noqa: PLC0415 - as above

    if task.facts["kind"] != WheelFormat.NAME or task.facts["python"] == ANY_PYTHON:
        return {}
    return {"PATH": str(Path(_interpreter(task).path).parent)}


def _interpreter(task: Task) -> "Interpreter":
    """Return the Python of a job; for a core, any Python of the system that it runs in."""
    from torchyard.toolchain.interpreters import (  # noqa: PLC0415 - as above
        interpreter_for,
        running_interpreter,
    )

    if task.stage is Stage.CORE:
        return running_interpreter()
    try:
        return interpreter_for(task.facts["python"])
    except HostError as error:  # it exists on the planning machine
        raise ElsewhereError.of(error.diagnostics) from error


def end_cache(context: StepContext) -> dict[str, str]:
    """Stop a job's compile cache server, if it has one, and return its statistics."""
    if "SCCACHE_SERVER_UDS" not in context.tools or context.sandbox.kind != "view":
        return {}
    from torchyard.toolchain import cache  # noqa: PLC0415 - few jobs have one

    env, folder = context.environment(), context.workdir.folder
    try:
        served = cache.stats(env, folder)
        cache.stop(env, folder)
    except (HostError, OSError, msgspec.MsgspecError):  # missing statistics must not fail the job
        return {}
    return {"cache_hits": str(served.hits), "cache_misses": str(served.misses)}


def _toolchain(core: Task, cache: str | None) -> Toolchain:
    """Return the parts of the file's table that the job depends on."""
    table = dict(core.table("toolchain"))
    own: dict[str, object] = {key: table.pop(key) for key in ("compiler", "blas") if key in table}
    return msgspec.convert({**own, "toolkits": table, "cache": cache}, Toolchain)
