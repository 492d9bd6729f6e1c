"""Load a wheel beside a torch release, whatever its metadata say about that release."""

from pathlib import Path

from torchyard.errors import HostError
from torchyard.smoke.attempt import attempt
from torchyard.smoke.confined import refuse_direct_references, uv_install
from torchyard.smoke.install import (
    UnfitError,
    installation_in,
    interpreter_of,
    make_uv_venv,
)
from torchyard.smoke.installation import Installation, Installer
from torchyard.smoke.outcome import Outcome, SmokeAttempt
from torchyard.smoke.package_under_test import PackageUnderTest
from torchyard.smoke.suite import built_in
from torchyard.smoke.surroundings import plain
from torchyard.toolchain.interpreters import find_interpreters

_SUITE = "loading"


def load_beside_torch(
    package: PackageUnderTest, torch: str, python: str, folder: Path
) -> SmokeAttempt:
    """Install a wheel and a torch release into a fresh environment, and load the wheel.

    Args:
        package: The wheel.
        torch: The version of torch, which overrides the wheel's requirement.
        python: The version of Python, such as `3.12`.
        folder: A fresh folder, for the environment.
    """
    (test,) = built_in(_SUITE)
    folder.mkdir(parents=True)
    try:
        installation = _install(package, torch, python, folder / "installed")
    except (UnfitError, HostError) as error:
        *_, why = str(error).strip().splitlines()
        return SmokeAttempt(test=test.name, outcome=Outcome.NOT_RUN, why=why.strip(" └├─│."))
    return attempt(test, package, plain(installation, folder), folder / "run")


def _install(package: PackageUnderTest, torch: str, python: str, folder: Path) -> Installation:
    """Install a wheel with uv, with a torch that overrides its requirement."""
    paths = [found.path for found in find_interpreters() if found.version.startswith(f"{python}.")]
    if not paths:
        msg = f"there is no Python {python} here"
        raise UnfitError(msg)
    refuse_direct_references(Path(package.path))
    interpreter = interpreter_of(package, Path(paths[0]))
    make_uv_venv(interpreter.path, folder)
    pin = f"torch=={torch}"
    overrides = folder / "overrides.txt"
    overrides.write_text(f"{pin}\n", encoding="utf-8")
    words = ("--overrides", str(overrides), package.path, pin)
    uv_install(str(folder / "bin/python"), *words, cwd=folder.parent)
    return installation_in(folder, package, interpreter, Installer.UV)
