"""The oldest and the newest numpy that supports a Python, each tested with the same package."""

from pathlib import Path

import msgspec

from torchyard.errors import HostError
from torchyard.smoke.confined import uv_install
from torchyard.smoke.installation import Installer
from torchyard.smoke.overlay import make_overlay
from torchyard.smoke.suite import Need
from torchyard.smoke.surroundings import Surroundings

_RESOLUTIONS = {"oldest": "lowest", "newest": "highest"}


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
