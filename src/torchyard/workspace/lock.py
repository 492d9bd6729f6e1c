"""Lock the build environments of an extension."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace
from packaging.version import Version

from torchyard.compute.registry import compute_of_wheels
from torchyard.config.decode import decode
from torchyard.config.load import load_config, read_document
from torchyard.config.lock import (
    build_lock_path,
    build_lock_text,
    parse_build_lock,
    read_build_lock,
)
from torchyard.config.matrix import named_values
from torchyard.config.tables import load_tables
from torchyard.errors import ConfigError, HostError
from torchyard.host.files import write_text
from torchyard.host.network_settings import network_settings
from torchyard.model.config import Config
from torchyard.model.event import Listener
from torchyard.model.identifier import scope_of, scope_path
from torchyard.model.lock import BuildLock
from torchyard.model.quantity import show_size
from torchyard.model.recipe import DEPTH, Dimension, Stage
from torchyard.model.tables import TORCH_PREFIX, TORCH_RELEASE, Release
from torchyard.plan.graph import Plan
from torchyard.store.trees import fetch_file
from torchyard.toolchain.environment_lock import (
    TORCH,
    LockedEnvironment,
    lock_target,
    resolve_with_torch,
)
from torchyard.toolchain.index_wheels import wheel_sizes
from torchyard.toolchain.python_project import PYPROJECT, BuildSystem, read_build_system
from torchyard.toolchain.registry import find_digest
from torchyard.workspace.build import PreparedBuild, prepare_build
from torchyard.workspace.build_request import BuildRequest
from torchyard.workspace.conda_lock import lock_conda
from torchyard.workspace.indexed_release import find_indexed_release, matrix_wheels


def lock_environments(
    file: str = "torchyard.toml",
    *,
    upgrade: bool = False,
    listeners: Iterable[Listener] = (),
    say: Callable[[str], object] = lambda _: None,
) -> BuildLock:
    """Write the lock of a file, and return it; new environments get the newest wheels that fit.

    The image of [root] is locked by its digest, and conda environments of [toolchain] in a file
    for each platform and Python; recipes without environments lock nothing else.
    Requirements come from the source, which is fetched if the store lacks it. Torch releases that
    are not in the tables are looked up in the index first. Locked environments stay unchanged,
    unless the requirements change or `upgrade` is set.
    """
    first = _lock_first(file, say, upgrade=upgrade)
    config = load_config(file)
    if config.toolchain is not None and config.toolchain.conda is not None:
        conda = lock_conda(config.toolchain.conda, config, file, say, upgrade=upgrade)
        return replace(first, conda=conda)
    if not config.project.recipe.is_extension and first.images:
        return first
    if not config.project.recipe.is_extension:
        msg = f"recipe `{config.project.recipe.name}` has no environments to lock"
        raise ConfigError(msg, hint="its build requirements are pinned in `requires` of [build]")
    requires = project_requirements(file, listeners=listeners)
    known = BuildLock() if upgrade or config.lock.requires != requires else config.lock
    files: dict[str, dict[str, str]] = {}
    sizes = dict(known.sizes)
    for path in _paths(prepare_build(BuildRequest(file, select=("bindings:*", "smoke:*"))).plan):
        if locked := known.environments.get(path):
            files[path] = {name: known.files[name] for name in locked}
        else:
            made = _environment(config, requires, path)
            files[path] = dict(made.files)
            sizes |= (added := wheel_sizes(made.wheels))
            say(_summary(path, made, sum(added.values())))
    lock = BuildLock(
        requires=requires,
        environments={path: tuple(sorted(found)) for path, found in files.items()},
        files={name: digest for found in files.values() for name, digest in found.items()},
        sizes={name: sizes[name] for found in files.values() for name in found if name in sizes},
        releases=config.lock.releases,
        images=config.lock.images,
    )
    _write(lock, file)
    return lock


def project_requirements(
    file: str, *, changes: Sequence[str] = (), listeners: Iterable[Listener] = ()
) -> tuple[str, ...]:
    """Fetch a file's source, and return its build requirements besides torch."""
    build = prepare_build(BuildRequest(file, changes, select=("source:*",)))
    result = build.run(listeners)
    if error := result.error():
        why = "\n".join(ended.why for ended in result.failed)
        raise type(error)(why, hint="correct [source], and run `torchyard lock` again")
    return (*_build_system(build).requires, *build.plan.config.build.requires)


def _write(lock: BuildLock, file: str) -> None:
    path, text = build_lock_path(file), build_lock_text(lock)
    parse_build_lock(text, path)  # refuses names that an index has made up
    write_text(path, text, replace=True)


def _lock_first(file: str, say: Callable[[str], object], *, upgrade: bool) -> BuildLock:
    """Lock what planning needs, and return the lock.

    That is the digest of the image, and rows of torch releases missing from the tables.
    """
    known = None
    with suppress(ConfigError):  # an unreadable lock is written anew
        known = read_build_lock(file)
    kept = BuildLock() if upgrade or known is None else known
    lock = replace(
        known or BuildLock(),
        releases=_unknown_releases(file, kept.releases, say),
        images=_images(file, kept.images, say),
    )
    if lock != known:
        _write(lock, file)
    return lock


def _images(file: str, known: Mapping[str, str], say: Callable[[str], object]) -> dict[str, str]:
    """Return the digest of an image that the file names without one."""
    image = decode(read_document(file)).root.image
    if image is None or "@" in image:
        return {}
    digest = known.get(image) or find_digest(image)
    if image not in known:
        say(f"{image}: {digest}")
    return {image: digest}


def _unknown_releases(
    file: str, known: Mapping[str, Release], say: Callable[[str], object]
) -> dict[str, Release]:
    """Return rows for the file's torch releases that are missing from the tables.

    Rows in `known` are kept if they cover the matrix.
    """
    spec, tables = decode(read_document(file)), load_tables()
    named = (TORCH_RELEASE.fullmatch(value) for value in named_values(spec.matrix, Dimension.TORCH))
    listed = {*tables.releases, *spec.tables.releases}
    names = dict.fromkeys(match[1] for match in named if match and match[1] not in listed)
    platforms, computes = matrix_wheels(spec, tables)
    found = {
        name: known[name]
        for name in names
        if name in known and _has_all(known[name], platforms, computes)
    }
    unknown = [name for name in names if name not in found]
    if not unknown:
        return found
    from torchyard.index.simple.project_files import list_wheels

    network = network_settings()

    wheels = list_wheels(TORCH, network.indexes, network.links)
    for name in unknown:
        version, found[name] = find_indexed_release(
            name, wheels, platforms=platforms, computes=computes
        )
        say(_note(name, version, found[name]))
    return found


def _has_all(row: Release, platforms: Iterable[str], computes: Iterable[str]) -> bool:
    return all(set(platforms) <= set(row.archs.get(compute, {})) for compute in computes)


def _note(name: str, version: str, row: Release) -> str:
    computes = f"{', '.join(row.libraries)} and " if row.libraries else ""
    what = f"the index has {version} for {computes}{', '.join(row.pythons)}"
    return f"torch {name} is not in torchyard's tables: {what}"


def _paths(plan: Plan) -> Iterable[str]:
    """Return the environments of a plan: for compiling, and only for smoke tests."""
    stages = (Stage.BINDINGS, Stage.SMOKE)
    scopes = (job.scope[: DEPTH[Stage.BINDINGS]] for job in plan.jobs if job.stage in stages)
    return dict.fromkeys(map(scope_path, scopes))


def _build_system(build: PreparedBuild) -> BuildSystem:
    """Return the build system of the project in the source's result."""
    (job,) = (job for job in build.plan.jobs if job.stage is Stage.SOURCE)
    result = build.store.get(job.fingerprint, job.identifier)
    for file in result.tree.files:
        if file.path == PYPROJECT:
            with TemporaryDirectory() as name:
                path = Path(name, PYPROJECT)
                fetch_file(build.store, file, path)
                return read_build_system(path.read_text(encoding="utf-8", errors="replace"))
    return read_build_system(None)


def _environment(config: Config, requires: Sequence[str], path: str) -> LockedEnvironment:
    platform, compute, variant, python = scope_of(Stage.BINDINGS, path)
    tables = config.tables
    made = resolve_with_torch(
        requires,
        variant.removeprefix(TORCH_PREFIX),
        compute,
        lock_target(tables, platform, python),
    )
    brought, torch = compute_of_wheels(made.versions), made.versions[TORCH]
    if tables.compute[compute].is_gpu and compute not in (brought, Version(torch).local):
        msg = f"torch {torch} of the index was built for {brought or 'no GPU'}, and not {compute}"
        hint = "name the compute platform that it has, or an index with the other one, to uv"
        raise HostError(msg, hint=hint)
    return made


def _summary(path: str, made: LockedEnvironment, size: int) -> str:
    compute, brought = scope_of(Stage.BINDINGS, path)[1], compute_of_wheels(made.versions)
    torch = made.versions[TORCH]
    note = hint = ""
    if brought not in ("", compute):
        note = f", which is for {brought}"
        hint = f"; an index with {torch}+{compute}, named by UV_INDEX, has a smaller one"
    return f"{path}: torch {torch}{note}, {len(made.files)} wheels of {show_size(size)}{hint}"
