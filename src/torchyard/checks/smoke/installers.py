"""The installers for the packages of each format in a smoke test."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from torchyard.checks.smoke.conda import install_conda
from torchyard.checks.smoke.install import (
    install_wheel,
    interpreter_of,
    refuse_other_subdirs,
    unzip,
)
from torchyard.checks.smoke.installation import Installation, Installer
from torchyard.checks.smoke.package_under_test import PackageUnderTest
from torchyard.checks.smoke.request import Request
from torchyard.package.conda.format import CondaFormat
from torchyard.package.libtorch.format import LibtorchFormat
from torchyard.package.wheel.format import WheelFormat

Install = Callable[[Path], Installation]
"""Installs a package into a folder."""

Prepare = Callable[[PackageUnderTest, Request, Installer, Sequence[PackageUnderTest]], Install]
"""Prepares the installation of a package; the last argument are packages given with it.

Raises UnfitError if the package is not for this machine, or for none of its Pythons.
"""


class Ways(NamedTuple):
    """The installers to try packages of a format with, and how each is prepared."""

    installers: Callable[[Request], tuple[Installer, ...]]
    prepare: Prepare


def _wheel(
    package: PackageUnderTest,
    request: Request,
    installer: Installer,
    _beside: Sequence[PackageUnderTest],
) -> Install:
    wanted = Path(request.python) if request.python else None
    python = interpreter_of(package, wanted)
    return partial(install_wheel, package, python, installer, request.indexes)


def _conda(
    package: PackageUnderTest,
    request: Request,
    _installer: Installer,
    beside: Sequence[PackageUnderTest],
) -> Install:
    refuse_other_subdirs(package)
    given = [one for one in beside if one.format == package.format]
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
"""By the names of formats."""
