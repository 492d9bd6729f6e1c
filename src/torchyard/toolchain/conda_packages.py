"""Packages that builds of conda recipes require, fetched before them into a cache that jobs share.

A job sees the cache read-only. What is missing there, rattler-build fetches itself.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING

from torchyard.errors import HostError
from torchyard.host.cache import cache_folder
from torchyard.host.network_settings import local_paths
from torchyard.model.lock import CONDA
from torchyard.toolchain.conda_lock import USER
from torchyard.toolchain.conda_recipe import output_name, render_recipe
from torchyard.toolchain.rattler import call_rattler

if TYPE_CHECKING:
    from rattler_build import RenderedVariant

_PACKAGES = "packages"
_LOCK = ".lock"
"""The suffix of rattler's note of a package's digest, beside its directory."""


def packages_folder() -> Path | None:
    """Return the directory of the shared cache; None if there can't be one."""
    folder = cache_folder(CONDA)
    return folder / _PACKAGES if folder else None


def fetch_packages(
    source: Path, subdir: str, wanted: Mapping[str, str], channels: Sequence[str]
) -> None:
    """Fetch what some outputs of a recipe are built with, as far as it is known before.

    That is all but outputs of the recipe, and what run exports add.
    """
    own = {output_name(output).name for output in render_recipe(source, subdir)}
    folder, outputs = cache_folder(CONDA), render_recipe(source, subdir, wanted)
    specs = {environment for output in outputs for environment in _environments(output, own)}
    if folder is None or not specs:
        return
    asked = {
        "channels": [*channels],
        "environments": sorted(specs),
        "subdir": subdir,
        "cache": str(folder),
        "packages": str(folder / _PACKAGES),
    }
    local = (path for _, path in local_paths(channels))
    with suppress(HostError):  # the build says what can't be fetched
        call_rattler("fetch", asked, USER, writable=folder, readable=local)


def _environments(rendered: "RenderedVariant", own: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Yield the requirements of each environment; a bare name gets the version of its variant."""
    recipe = rendered.recipe
    used = {key: str(value) for key, value in recipe.used_variant.items()}
    for part in (recipe.requirements, *(cache.requirements for cache in recipe.staging_caches)):
        for listed in (part.build, part.host):
            plain = (spec for spec in listed if isinstance(spec, str))
            specs = (spec for spec in plain if spec.split()[0] not in own)
            if found := tuple(sorted(_pinned(spec, used) for spec in specs)):
                yield found


def _pinned(spec: str, used: Mapping[str, str]) -> str:
    version = used.get(spec.replace("-", "_"))
    return spec if version is None else f"{spec} {version}"


def use_packages(shared: Path, cache: Path) -> None:
    """Let rattler use the packages of the shared cache, and fetch others into `cache`."""
    packages = cache / "pkgs"
    packages.mkdir(parents=True, exist_ok=True)
    for lock in shared.glob(f"[!.]*{_LOCK}"):
        folder = packages / lock.name.removesuffix(_LOCK)
        if lock.stat().st_size and not folder.exists():  # without a digest, it is being fetched
            copyfile(lock, packages / lock.name)
            folder.symlink_to(shared / folder.name)
    os.environ["RATTLER_CACHE_DIR"] = str(cache)
