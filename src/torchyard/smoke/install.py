"""Install a package into a fresh environment, with only its declared requirements."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.tags import compatible_tags, cpython_tags, platform_tags

from torchyard.config.tables import load_tables
from torchyard.errors import HostError
from torchyard.host.http import HttpClient
from torchyard.host.machine import platform_name
from torchyard.package.zip.unpack import unpack_zip
from torchyard.smoke.confined import (
    channel_folders,
    run_pip,
    run_uv,
    uv_install,
)
from torchyard.smoke.installation import (
    Installation,
    Installer,
    installed_dist_infos,
    libraries_in,
    modules_in,
    recorded,
    site_of,
)
from torchyard.smoke.package_under_test import PackageUnderTest
from torchyard.toolchain.interpreters import Interpreter, find_interpreters, query_interpreter


class UnfitError(Exception):
    """A package is for another Python or another system."""


def interpreter_of(package: PackageUnderTest, wanted: Path | None) -> Interpreter:
    """Return the requested Python, or this machine's newest that the wheel supports."""
    if wanted is not None:
        chosen = query_interpreter(wanted.absolute())
        if not _fits(package, chosen):
            msg = f"it is not for {wanted}, which is a {chosen.tag}"
            raise UnfitError(msg)
        return chosen
    fitting = [interpreter for interpreter in find_interpreters() if _fits(package, interpreter)]
    if fitting:
        return min(fitting, key=lambda python: not python.headers)
    tags = ", ".join(sorted(map(str, package.tags)))
    msg = f"it is for {tags}, but this machine has no such Python, or is another system"
    raise UnfitError(msg)


def refuse_other_subdirs(package: PackageUnderTest) -> None:
    """Refuse a conda package for another system."""
    here = load_tables().platforms.get(platform_name())
    if here and package.subdir not in {"noarch", here.conda_subdir}:
        msg = f"it is for {package.subdir}, and this is {here.conda_subdir}"
        raise UnfitError(msg)


def _fits(package: PackageUnderTest, python: Interpreter) -> bool:
    major, minor, _ = map(int, python.version.split("."))
    platforms = list(platform_tags())
    abis = [python.tag] if python.free_threaded else None
    known = {
        *cpython_tags((major, minor), abis, platforms),
        *compatible_tags((major, minor), python.tag, platforms),
    }
    return not package.tags.isdisjoint(known)


def install_wheel(
    package: PackageUnderTest,
    interpreter: Interpreter,
    installer: Installer,
    others: Sequence[str],
    folder: Path,
) -> Installation:
    """Install the wheel into its environment.

    A published wheel is installed from its index, and packages missing there, from `others`.
    """
    wanted = _wanted(package, installer, others)
    channels = list(channel_folders((package.index, *others)))
    python = str(folder / "bin/python")
    if installer == Installer.PIP:
        pip = ("install", "--quiet", "--no-input", "--no-compile")
        run_pip(python, *pip, *wanted, cwd=folder.parent, sees=channels)
    else:
        uv_install(python, *wanted, cwd=folder.parent, sees=channels)
    return installation_in(folder, package, interpreter, installer)


def make_uv_venv(python: str, folder: Path) -> None:
    """Make an environment without pip."""
    words = ("venv", "--quiet", "--no-project", "--python", python, str(folder))
    run_uv(*words, cwd=folder.parent)


def installation_in(
    folder: Path, package: PackageUnderTest, interpreter: Interpreter, installer: Installer
) -> Installation:
    """Return the installation of a package in an environment."""
    site = site_of(folder)
    files = recorded(installed_dist_infos(site)[package.name])
    return Installation(
        installer=installer,
        prefix=str(folder),
        python=str(folder / "bin/python"),
        version=interpreter.version,
        include=interpreter.include if interpreter.headers else "",
        sites=(str(site),),
        distribution=package.name,
        modules=modules_in(files),
        libraries=libraries_in(files),
    )


def _wanted(package: PackageUnderTest, installer: Installer, others: Sequence[str]) -> list[str]:
    """Return the installer's arguments: a file, or a published version without caches."""
    if not package.index:
        return [package.path]
    is_pip = installer == Installer.PIP
    # uv takes UV_DEFAULT_INDEX of the caller rather than --index-url
    first, more = ("--index-url", "--extra-index-url") if is_pip else ("--default-index", "--index")
    words = [first, package.index, *(word for other in others for word in (more, other))]
    if is_pip:
        words += ["--no-cache-dir"]
    else:  # it would only use the first index with any version
        words += ["--no-cache", "--index-strategy", "unsafe-best-match"]
    return [*words, "--", f"{package.name}=={package.version}"]


def unmet_requirements(installation: Installation) -> HostError | None:
    """Return the conflicts among installed distributions, as `pip check` would, or None."""
    try:
        run_uv("pip", "check", "--python", installation.python, cwd=Path(installation.prefix))
    except HostError as error:
        return error
    return None


def unzip(package: PackageUnderTest, folder: Path) -> Installation:
    """Unpack a zip with its files in a single folder or at the top."""
    path = Path(package.path)
    if package.index:
        path = folder.with_name(package.file)
        _download(package.index, path)
    unpack_zip(path, folder)
    inner = list(folder.iterdir())
    root = inner[0] if len(inner) == 1 else folder
    libraries = libraries_in(path.name for path in root.glob("lib/*"))
    return Installation(installer=Installer.UNZIP, prefix=str(root), libraries=libraries)


def _download(url: str, to: Path) -> None:
    """Fetch a file like a browser."""
    parts = urlsplit(url)
    try:
        if parts.scheme == "file":
            shutil.copyfile(unquote(parts.path), to)
            return
        with to.open("wb") as file:
            for piece in HttpClient().pieces(url):
                file.write(piece)
    except FileNotFoundError as error:
        msg = f"there is no `{url}`"
        raise HostError(msg, hint="check whether the channel's page lists it") from error
