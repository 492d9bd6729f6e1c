"""Environments on top of an installed one: the same files at other paths, or with numpy."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from torchyard.errors import HostError
from torchyard.smoke.confined import uv_install
from torchyard.smoke.installation import Installation, Installer
from torchyard.smoke.suite import Need
from torchyard.smoke.surroundings import Surroundings

_RESOLUTIONS = {"oldest": "lowest", "newest": "highest"}
"""The oldest and the newest numpy for a Python, both tested with the package."""


def make_overlay(installation: Installation, folder: Path, sites: Sequence[Path]) -> Installation:
    """Create an empty environment that imports from other folders."""
    name = f"python{'.'.join(installation.version.split('.')[:2])}"
    if Path(installation.prefix, "lib", f"{name}t").is_dir():  # without the GIL
        name = f"{name}t"
    own_site = folder / "lib" / name / "site-packages"
    for target in (own_site, folder / "bin"):
        target.mkdir(parents=True, exist_ok=True)
    original = Path(installation.prefix, "pyvenv.cfg")
    (folder / "pyvenv.cfg").write_bytes(original.read_bytes())
    python = folder / "bin/python"
    python.symlink_to(os.path.realpath(installation.python))
    (own_site / "overlay.pth").write_text("".join(f"{site}\n" for site in sites), encoding="utf-8")
    return msgspec.structs.replace(
        installation, prefix=str(folder), python=str(python), sites=tuple(map(str, sites))
    )


def with_numpy(around: Surroundings, folder: Path) -> list[Surroundings]:
    """Return the surroundings with each numpy, or once without numpy and with the reason.

    A conda environment only has numpy if its packages require it.
    """
    installation = around.installation
    if installation.installer == Installer.CONDA:
        there = any(Path(site, "numpy").is_dir() for site in installation.sites)
        return [around if there else _without(around, "there is no numpy in this environment")]
    try:
        return _installed(around, folder)
    except HostError as error:
        return [_without(around, f"numpy can't be installed: {str(error).splitlines()[-1]}")]


def _without(around: Surroundings, why: str) -> Surroundings:
    return msgspec.structs.replace(around, without={Need.NUMPY: why})


def _installed(around: Surroundings, folder: Path) -> list[Surroundings]:
    installation = around.installation
    folder.mkdir(exist_ok=True)
    found = []
    for which, resolution in _RESOLUTIONS.items():
        modules = folder / which
        if not list(modules.glob("numpy-*.dist-info")):  # a failed uv leaves a folder
            words = ["--resolution", resolution, "--target", str(modules), "numpy"]
            env = [Path(installation.prefix)]
            uv_install(installation.python, *words, cwd=folder, sees=env)
        (info,) = modules.glob("numpy-*.dist-info")
        version = info.name.removeprefix("numpy-").removesuffix(".dist-info")
        sites = [modules, *map(Path, installation.sites)]
        overlay = make_overlay(installation, folder / f"{around.environment}-{which}", sites)
        found.append(
            msgspec.structs.replace(around, installation=overlay, variant=f"numpy {version}")
        )
    return found
