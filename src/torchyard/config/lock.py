"""Read and write `torchyard.lock`."""

import re

import msgspec

from torchyard.compute.registry import platform_for
from torchyard.compute.table import ComputeRow
from torchyard.config.tables import toml_value
from torchyard.errors import ConfigError
from torchyard.host.files import exists, read_folder, read_text
from torchyard.model.config import own_release
from torchyard.model.lock import CONDA, BuildLock
from torchyard.model.tables import Compute, Tables
from torchyard.model.values import UNDECODABLE, Origin

_WHEEL = re.compile(r"[\w.]+-[\w.!+]+(-\d\w*)?(-[\w.]+){3}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_IMAGE = re.compile(r"sha256:[0-9a-f]{64}")
_FOUND = Origin("torchyard.lock")
_HINT = "`torchyard lock` writes it again"
_HEAD = """\
# Written by `torchyard lock`: the wheels that each cell is built with, by name and SHA-256.
# Keep it under version control, beside its torchyard.toml.
"""


def build_lock_path(file: str) -> str:
    """Return the path of a file's lock: `torchyard.lock` for `torchyard.toml`."""
    return f"{file.removesuffix('.toml')}.lock"


def conda_lock_folder(file: str) -> str:
    """Return the directory of a file's conda locks: `torchyard.conda` for `torchyard.toml`."""
    return f"{file.removesuffix('.toml')}.{CONDA}"


def read_build_lock(file: str) -> BuildLock:
    """Return the lock of a file; empty if there is none."""
    path, folder = build_lock_path(file), conda_lock_folder(file)
    lock = parse_build_lock(read_text(path), path) if exists(path) else BuildLock()
    if not exists(folder):
        return lock
    conda = {name.removesuffix(".lock"): text for name, text in read_folder(folder).items()}
    return msgspec.structs.replace(lock, conda=conda)


def parse_build_lock(text: str, path: str) -> BuildLock:
    """Parse a lock; each wheel of an environment must have a digest."""
    try:
        lock = msgspec.toml.decode(text, type=BuildLock)
    except UNDECODABLE as error:
        msg = f"`{path}` can't be read: {error}"
        raise ConfigError(msg, hint=_HINT) from error
    _check_digests(lock, path)
    for environment, names in lock.environments.items():
        for name in names:
            if name not in lock.files:
                msg = f"`{path}` has no SHA-256 of `{name}`, which `{environment}` contains"
                raise ConfigError(msg, hint=_HINT)
    for name in lock.releases:
        if own_release(name) != name:
            msg = f"`{path}` has a row for `{name}`, which is not a torch release"
            raise ConfigError(msg, hint=_HINT)
    return lock


def _check_digests(lock: BuildLock, path: str) -> None:
    for name, digest in lock.files.items():
        if not _WHEEL.fullmatch(name) or not _SHA256.fullmatch(digest):
            msg = f"`{path}` has no wheel and SHA-256 in `{name} = {digest}`"
            raise ConfigError(msg, hint=_HINT)
    for name, digest in lock.images.items():
        if not _IMAGE.fullmatch(digest):
            msg = f"`{path}` has no SHA-256 of the image `{name}`"
            raise ConfigError(msg, hint=_HINT)


def add_locked_rows(tables: Tables, lock: BuildLock) -> Tables:
    """Return tables with the torch releases of a lock, and their compute platforms."""
    if not lock.releases:
        return tables
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for release in lock.releases.values():
        for compute, archs in release.archs.items():
            found.setdefault(compute, {}).update(archs)
    new = {name: _compute(name, found[name]) for name in found if name not in tables.compute}
    return msgspec.structs.replace(
        tables, releases={**tables.releases, **lock.releases}, compute={**tables.compute, **new}
    )


def _compute(name: str, archs: dict[str, tuple[str, ...]]) -> Compute:
    platform = platform_for(name)
    row = ComputeRow(version=platform.version(name), archs=archs)
    return platform.compute_of(row, str(_FOUND))


def locked_origins(lock: BuildLock) -> dict[str, Origin]:
    """Return the origins of a lock's rows, in the form of the origins of a file's rows."""
    rows = (f"tables.releases.{name}" for name in lock.releases)
    return dict.fromkeys(rows, _FOUND)


def build_lock_text(lock: BuildLock) -> str:
    """Return a lock as TOML, sorted to keep differences small."""
    requires = f"requires = {toml_value(lock.requires)}\n" if lock.requires else ""
    lines = [f"{_HEAD}version = {lock.version}\n{requires}\n[environments]\n"]
    for name, wheels in sorted(lock.environments.items()):
        listed = "".join(f'  "{wheel}",\n' for wheel in sorted(wheels))
        lines.append(f'"{name}" = [\n{listed}]\n')
    lines.append("\n[files]\n")
    lines += [f'"{name}" = "{digest}"\n' for name, digest in sorted(lock.files.items())]
    if lock.sizes:
        lines.append("\n[sizes]\n")
        lines += [f'"{name}" = {size}\n' for name, size in sorted(lock.sizes.items())]
    if lock.images:
        lines.append("\n[images]\n")
        lines += [f'"{name}" = "{digest}"\n' for name, digest in sorted(lock.images.items())]
    for name, release in sorted(lock.releases.items()):
        lines.append(f'\n[releases."{name}"]\n')
        row = msgspec.to_builtins(release)
        lines += [f"{key} = {toml_value(value)}\n" for key, value in row.items()]
    return "".join(lines)
