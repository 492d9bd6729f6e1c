"""Conda packages: make a channel of them, and install a prefix from it and others."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from torchyard.compute.registry import platform_for
from torchyard.errors import HostError
from torchyard.host.files import link_or_copy
from torchyard.smoke.installation import (
    Installation,
    Installer,
    libraries_in,
    modules_in,
    site_of,
)
from torchyard.smoke.package_under_test import PackageUnderTest
from torchyard.smoke.recipe_tests import read_recipe_tests, write_recipe_tests
from torchyard.toolchain.conda_lock import channel_address
from torchyard.toolchain.interpreters import query_interpreter
from torchyard.toolchain.rattler import ChosenBuild, call_rattler

UNSOLVABLE = "unsolvable"
"""The reason of the error when no set of packages satisfies the request."""

_USER = "tests of conda packages"

NOTHING: Mapping[str, str] = MappingProxyType({})


class _Record(msgspec.Struct):
    """The needed fields of a prefix's record of a package."""

    files: tuple[str, ...] = ()


def index_channel(channel: Path) -> None:
    """Write the index of a channel with packages in folders of their platforms."""
    (channel / "noarch").mkdir(parents=True, exist_ok=True)
    call_rattler("index", str(channel.absolute()), _USER)


def solve(  # noqa: PLR0913 - what, from where, to where, on what
    channels: Sequence[str],
    specs: Sequence[str],
    prefix: Path | None,
    cache: Path,
    system: Mapping[str, str] = NOTHING,
    *,
    exact: bool = False,
) -> dict[str, ChosenBuild]:
    """Choose packages, and install them into `prefix` if given; return them by name.

    `system` are virtual packages in addition to the machine's or, if `exact`, instead of them.
    """
    asked = {
        "channels": list(channels),
        "specs": list(specs),
        "prefix": str(prefix or ""),
        "cache": str(cache),
        "system": dict(system),
        "exact": exact,
    }
    answer = call_rattler("install", asked, _USER)
    if answer.error:
        msg = f"no set of packages fulfils {', '.join(specs)}: {answer.error}"
        hint = "name channels with its requirements by --conda-channel"
        raise HostError(msg, hint=hint, reason=UNSOLVABLE)
    return answer.chosen


def install_conda(
    package: PackageUnderTest,
    beside: Sequence[PackageUnderTest],
    channels: Sequence[str],
    folder: Path,
) -> Installation:
    """Install a package from a channel of the given packages, and from other channels.

    A published package is installed from its own channel. A file is installed together with what
    the tests in it require.
    """
    spec = f"{package.name} =={package.version} {package.build}"
    first = package.index or _channel_of(beside, folder.with_name("channel"))
    sources = (first, *map(channel_address, channels))
    tests = read_recipe_tests(Path(package.path)) if not package.index else []
    specs = [spec, *(need for test in tests for need in test.required)]
    solve(sources, specs, folder, folder.with_name("cache"), _driver(package.compute))
    found = write_recipe_tests(tests, folder.with_name("recipe-tests"))
    return msgspec.structs.replace(_installed(package, folder), tests=found)


def _channel_of(beside: Sequence[PackageUnderTest], channel: Path) -> str:
    """Make a channel of packages, and return its address."""
    for package in beside:
        subdir = channel / package.subdir
        subdir.mkdir(parents=True, exist_ok=True)
        link_or_copy(package.path, str(subdir / package.file))
    index_channel(channel)
    return channel.absolute().as_uri()


def _driver(compute: str) -> dict[str, str]:
    """Return the virtual package of a GPU's driver, to solve without a driver."""
    platform = platform_for(compute)
    driver = platform.conda_virtual_package
    return {driver: platform.version(compute)} if driver else {}


def _installed(package: PackageUnderTest, prefix: Path) -> Installation:
    """Return the installation of a package in a prefix."""
    name = f"{package.name}-{package.version}-{package.build}.json"
    record = msgspec.json.decode((prefix / "conda-meta" / name).read_bytes(), type=_Record)
    program = prefix / "bin/python"
    base = Installation(
        installer=Installer.CONDA, prefix=str(prefix), libraries=libraries_in(record.files)
    )
    if not program.exists():
        return base
    python, site = query_interpreter(program), site_of(prefix)
    inside = f"{site.relative_to(prefix)}/"
    files = [file.removeprefix(inside) for file in record.files if file.startswith(inside)]
    infos = [file.partition("/")[0] for file in files if file.endswith(".dist-info/METADATA")]
    return msgspec.structs.replace(
        base,
        python=str(program),
        version=python.version,
        include=python.include if python.headers else "",
        sites=(str(site),),
        distribution=infos[0].partition("-")[0] if infos else "",
        modules=modules_in(files),
    )
