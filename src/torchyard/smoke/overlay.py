"""Environments on top of an installed one: the same files, found in another way, or with numpy."""

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
"""The oldest and the newest numpy that supports a Python, each tested with the same package."""


def make_overlay(installation: Installation, folder: Path, sites: Sequence[Path]) -> Installation:
    """Create an empty environment that finds its modules in other folders."""
    name = f"python{'.'.join(installation.version.split('.')[:2])}"
    if Path(installation.prefix, "lib", f"{name}t").is_dir():  # without the GIL
        name = f"{name}t"
    own = folder / "lib" / name / "site-packages"
    for place in (own, folder / "bin"):
        place.mkdir(parents=True, exist_ok=True)
    original = Path(installation.prefix, "pyvenv.cfg")
    (folder / "pyvenv.cfg").write_bytes(original.read_bytes())
    python = folder / "bin/python"
    python.symlink_to(os.path.realpath(installation.python))
    (own / "overlay.pth").write_text("".join(f"{site}\n" for site in sites), encoding="utf-8")
    return msgspec.structs.replace(
        installation, prefix=str(folder), python=str(python), sites=tuple(map(str, sites))
    )


def with_numpy(around: Surroundings, folder: Path) -> list[Surroundings]:
    """Return the surroundings once per numpy; or once without numpy, and why.

    A conda environment has the numpy that its packages require, or none.
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
        if not list(modules.glob("numpy-*.dist-info")):  # uv leaves a folder when it fails
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
