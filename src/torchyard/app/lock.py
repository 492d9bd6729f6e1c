"""Lock the build environments of an extension."""

from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.version import Version

from torchyard.app.build import PreparedBuild, prepare_build
from torchyard.compute.registry import compute_platforms
from torchyard.config.load import load_config
from torchyard.config.lock import build_lock_path, build_lock_text, parse_build_lock
from torchyard.errors import ConfigError, HostError
from torchyard.host.files import write_text
from torchyard.model.config import Config
from torchyard.model.event import Listener
from torchyard.model.identifier import scope_of, scope_path
from torchyard.model.lock import BuildLock
from torchyard.model.recipe import DEPTH, Dimension, Stage
from torchyard.model.tables import TORCH_PREFIX
from torchyard.plan.graph import Plan
from torchyard.store.trees import fetch_file
from torchyard.toolchain.environment_lock import (
    TORCH,
    LockedEnvironment,
    LockTarget,
    resolve_with_torch,
)
from torchyard.toolchain.python_project import PYPROJECT, BuildSystem, read_build_system


def lock_environments(
    file: str = "torchyard.toml",
    *,
    listeners: Iterable[Listener] = (),
    say: Callable[[str], object] = lambda _: None,
) -> BuildLock:
    """Write the lock of a file, and return it; the environments get the newest wheels that fit.

    The requirements are those in the source, which is fetched if the store does not have it.
    """
    config = load_config(file)
    if config.project.recipe.variant is not Dimension.TORCH:
        msg = f"recipe `{config.project.recipe.name}` has no environments to lock"
        raise ConfigError(msg, hint="its build requirements are pinned in `requires` of [build]")
    build = prepare_build(file, select=("source:*",))
    result = build.run(listeners)
    if error := result.error():
        raise error
    system = _build_system(build)
    made: dict[str, LockedEnvironment] = {}
    for path in _paths(prepare_build(file, select=("bindings:*", "smoke:*")).plan):
        made[path] = _environment(config, system, path)
        say(_summary(path, made[path]))
    lock = BuildLock(
        environments={name: tuple(sorted(one.files)) for name, one in made.items()},
        files={name: digest for one in made.values() for name, digest in one.files.items()},
    )
    path, text = build_lock_path(file), build_lock_text(lock)
    parse_build_lock(text, path)  # refuses names that an index has made up
    write_text(path, text, replace=True)
    return lock


def _paths(plan: Plan) -> Iterable[str]:
    """Return the environments of a plan: those that compile, and those of smoke tests alone."""
    stages = (Stage.BINDINGS, Stage.SMOKE)
    scopes = (job.scope[: DEPTH[Stage.BINDINGS]] for job in plan.jobs if job.stage in stages)
    return dict.fromkeys(map(scope_path, scopes))


def _build_system(build: PreparedBuild) -> BuildSystem:
    """Return how the project in the source's result is built."""
    (job,) = (job for job in build.plan.jobs if job.stage is Stage.SOURCE)
    result = build.store.get(job.fingerprint, job.identifier)
    for file in result.tree.files:
        if file.path == PYPROJECT:
            with TemporaryDirectory() as name:
                fetch_file(build.store, file, Path(name, PYPROJECT))
                return read_build_system(Path(name, PYPROJECT).read_text(encoding="utf-8"))
    return read_build_system(None)


def _environment(config: Config, system: BuildSystem, path: str) -> LockedEnvironment:
    platform, compute, variant, python = scope_of(Stage.BINDINGS, path)
    tables = config.tables
    made = resolve_with_torch(
        [*system.requires, *config.build.requires],
        variant.removeprefix(TORCH_PREFIX),
        compute,
        LockTarget(tables.pythons[python].version, tables.platforms[platform].wheel_tag),
    )
    brought, torch = _compute_of(made), made.versions[TORCH]
    if tables.compute[compute].is_gpu and compute not in (brought, Version(torch).local):
        msg = f"torch {torch} of the index was built for {brought or 'no GPU'}, and not {compute}"
        hint = "name the compute platform that it has, or an index with the other one, to uv"
        raise HostError(msg, hint=hint)
    return made


def _compute_of(made: LockedEnvironment) -> str:
    """Return the compute platform whose libraries an environment has; empty if it has none."""
    pinned = {name: ".".join(version.split(".")[:2]) for name, version in made.versions.items()}
    return next(filter(None, (one.compute_required(pinned) for one in compute_platforms())), "")


def _summary(path: str, made: LockedEnvironment) -> str:
    compute, brought = scope_of(Stage.BINDINGS, path)[1], _compute_of(made)
    note = f", which is for {brought}" if brought not in ("", compute) else ""
    return f"{path}: torch {made.versions[TORCH]}{note}, {len(made.files)} wheels"
