"""The installers for the packages of each format in a smoke test."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from torchyard.package.conda.format import CondaFormat
from torchyard.package.libtorch.format import LibtorchFormat
from torchyard.package.wheel.format import WheelFormat
from torchyard.smoke.conda import install_conda
from torchyard.smoke.confined import make_venv, refuse_direct_references
from torchyard.smoke.install import (
    install_wheel,
    interpreter_of,
    make_uv_venv,
    refuse_other_subdirs,
    unzip,
)
from torchyard.smoke.installation import Installation, Installer, share_requirements
from torchyard.smoke.package_under_test import PackageUnderTest
from torchyard.smoke.request import Request

Install = Callable[[Path], Installation]
"""Installs a package into a folder."""

Prepare = Callable[[PackageUnderTest, Request, Installer, Sequence[PackageUnderTest]], Install]
"""Prepares the installation of a package; the last argument are packages given with it.

Raises UnfitError if the package does not fit this machine or any of its Pythons.
"""


class Ways(NamedTuple):
    """The installers for packages of a format, and the preparation of each."""

    installers: Callable[[Request], tuple[Installer, ...]]
    prepare: Prepare


def _wheel(
    package: PackageUnderTest,
    request: Request,
    installer: Installer,
    _beside: Sequence[PackageUnderTest],
) -> Install:
    """Return the installer of a wheel; a file reuses the previous environment's requirements.

    These are linked, so torch is unpacked once. A published wheel is installed like by its users.
    """
    python = interpreter_of(package, Path(request.python) if request.python else None)

    def install(folder: Path) -> Installation:
        if not package.index:
            refuse_direct_references(Path(package.path))
        make = make_venv if installer == Installer.PIP else make_uv_venv
        make(python.path, folder)
        if request.made and not package.index:
            share_requirements(request.made, folder)
        return install_wheel(package, python, installer, request.indexes, folder)

    return install


def _conda(
    package: PackageUnderTest,
    request: Request,
    _installer: Installer,
    beside: Sequence[PackageUnderTest],
) -> Install:
    refuse_other_subdirs(package)
    given = [other for other in beside if other.format == package.format]
    return partial(install_conda, package, given, request.channels)


def _unzip(
    package: PackageUnderTest,
    _request: Request,
    _installer: Installer,
    _beside: Sequence[PackageUnderTest],
) -> Install:
    return partial(unzip, package)


INSTALLERS: dict[str, Ways] = {
    WheelFormat.NAME: Ways(lambda request: request.installers, _wheel),
    CondaFormat.NAME: Ways(lambda _: (Installer.CONDA,), _conda),
    LibtorchFormat.NAME: Ways(lambda _: (Installer.UNZIP,), _unzip),
}
"""Installers by format."""
