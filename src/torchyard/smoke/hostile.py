"""Hostile environments, modelled on real failures, in which packages have to work.

A condition that can't be created on a machine is reported with the reason, never silently skipped.
"""

import os
import shutil
from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from functools import cache
from glob import glob
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from torchyard.compute.registry import compute_platforms, platform_for
from torchyard.errors import HostError
from torchyard.host.data_tables import parse_table
from torchyard.host.files import link_or_copy, read_data
from torchyard.host.process import capture
from torchyard.host.system_view import bubblewrap_fault, whole_machine
from torchyard.model.matrix import any_match
from torchyard.model.values import Value
from torchyard.smoke.installation import (
    Installation,
    Installer,
    installed_dist_infos,
    link_distribution,
    recorded,
)
from torchyard.smoke.overlay import make_overlay
from torchyard.smoke.package_under_test import PackageUnderTest
from torchyard.smoke.surroundings import Environment, Surroundings
from torchyard.toolchain.variables import SYSTEM_PATH


class Condition(StrEnum):
    """A fault in the environment of a package."""

    LIBRARIES = "wrong libraries"
    LIBGOMP = "other libgomp"
    PLATLIB = "split site-packages"
    READ_ONLY = "read-only"
    HOME = "no home"
    NETWORK = "no network"


class Hostility(Value, kw_only=True):
    """The table `data/smoke/hostile.toml`."""

    libraries: tuple[str, ...]
    preloads: tuple[str, ...]


class _ImpossibleError(Exception):
    """A condition can't be created here, with the reason."""


@cache
def load_hostility() -> Hostility:
    """Read the table."""
    return parse_table("smoke/hostile.toml", read_data("smoke/hostile.toml"), Hostility, _problems)


def _problems(table: Hostility) -> Iterator[str]:
    if sorted(table.libraries) != list(table.libraries):
        yield "has unsorted libraries"


def uses_other_wheels(package: PackageUnderTest, installation: Installation) -> bool:
    """Return whether a package, or the torch of an extension, finds libraries in other wheels.

    The index decides which torch an extension for the CPU gets: it may be one for a GPU.
    """
    if package.uses_other_wheels or not installation.is_extension:
        return package.uses_other_wheels
    installed = {name for site in installation.sites for name in installed_dist_infos(Path(site))}
    return not installed.isdisjoint(_library_wheels())


@cache
def _library_wheels() -> frozenset[str]:
    """Return the names of wheels with libraries of any compute platform."""
    rows = (row for platform in compute_platforms() for row in platform.libraries().values())
    return frozenset(canonicalize_name(wheel.distribution) for row in rows for wheel in row.wheels)


def conditions_of(
    environment: Environment, package: PackageUnderTest, installation: Installation
) -> frozenset[Condition]:
    """Return the conditions of an environment under which a package can still work.

    A wheel finds libraries in other wheels by RPATH, which takes precedence over LD_LIBRARY_PATH,
    or through Python if site-packages is split. No wheel can cope with both at once, so each has
    its own environment.
    """
    if environment is Environment.CLEAN:
        return frozenset()
    if not uses_other_wheels(package, installation):
        return frozenset(Condition) if environment is Environment.HOSTILE else frozenset()
    other = Condition.PLATLIB if environment is Environment.HOSTILE else Condition.LIBRARIES
    return frozenset(Condition) - {other}


def hostile(
    around: Surroundings,
    package: PackageUnderTest,
    folder: Path,
    conditions: Collection[Condition],
) -> Surroundings:
    """Return the surroundings with these conditions applied."""
    makers: dict[Condition, _Make] = {
        Condition.PLATLIB: _split,
        Condition.LIBRARIES: _mislead,
        Condition.LIBGOMP: _preload,
        Condition.HOME: _evict,
        Condition.READ_ONLY: _freeze,
        Condition.NETWORK: _cut_off,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for condition, make in makers.items():
        if condition not in conditions:
            continue
        try:
            around, how = make(around, package, folder)
        except _ImpossibleError as error:
            missing = around.missing | {condition.value: str(error)}
            around = msgspec.structs.replace(around, missing=missing)
        else:
            applied = around.applied | {condition.value: how}
            around = msgspec.structs.replace(around, applied=applied)
    return around


_Make = Callable[[Surroundings, PackageUnderTest, Path], tuple[Surroundings, str]]


def _split(
    around: Surroundings, package: PackageUnderTest, folder: Path
) -> tuple[Surroundings, str]:
    """Move pure and compiled distributions into different folders, as with lib and lib64.

    The package's code then loads libraries of other wheels, unless the system has the same ones.
    """
    installation = around.installation
    if installation.installer not in {Installer.PIP, Installer.UV}:
        msg = f"{installation.installer} has one folder for modules, or none"
        raise _ImpossibleError(msg)
    if library := _library_of_system(package):
        msg = f"the loader finds the system's `{library}`"
        raise _ImpossibleError(msg)
    (site,) = map(Path, installation.sites)
    prefix = folder / "env"
    pure = prefix / "lib" / site.parent.name / "site-packages"
    compiled = prefix / "lib64" / site.parent.name / "site-packages"
    for info in installed_dist_infos(site).values():
        about = (info / "WHEEL").read_text(encoding="utf-8")
        target = pure if "root-is-purelib: true" in about.lower() else compiled
        link_distribution(site, target, recorded(info))
    made = make_overlay(installation, prefix, [compiled])
    made = msgspec.structs.replace(made, sites=(str(compiled), str(pure)))
    env = around.env | {"PATH": around.env["PATH"].replace(installation.prefix, str(prefix))}
    return (
        msgspec.structs.replace(around, installation=made, env=env),
        "compiled distributions are in lib64, pure ones in lib",
    )


def _library_of_system(package: PackageUnderTest) -> str:
    """Return a library of other wheels that the loader finds in the system's folders, or ""."""
    globs = [name for row in package.rules for wheel in row.wheels for name in wheel.libraries]
    found = (line.split() for line in _loader_cache().splitlines())
    return next((words[0] for words in found if words and any_match(words[0], globs)), "")


def _loader_cache() -> str:
    try:
        return capture(["ldconfig", "-p"], cwd=Path("/"), env={"PATH": SYSTEM_PATH})
    except HostError:
        return ""


def _mislead(
    around: Surroundings, package: PackageUnderTest, folder: Path
) -> tuple[Surroundings, str]:
    """Place libraries with well-known names where the loader looks first, or almost first."""
    names = load_hostility().libraries
    if package.uses_other_wheels:
        names += around.installation.libraries
    elif platform_for(package.compute).is_gpu:
        msg = "only packages for cpu, and wheels for CUDA, can be safe from LD_LIBRARY_PATH"
        raise _ImpossibleError(msg)
    compiler = shutil.which("cc")
    if compiler is None:
        msg = "there is no C compiler here to make them"
        raise _ImpossibleError(msg)
    wrong = folder / "wrong"
    wrong.mkdir()
    (wrong / "empty.c").write_text("int torchyard_is_no_such_library;\n", encoding="utf-8")
    capture([compiler, "-shared", "-o", "empty.so", "empty.c"], cwd=wrong)
    for name in dict.fromkeys(names):
        link_or_copy(str(wrong / "empty.so"), str(wrong / name))
    env = around.env | {"LD_LIBRARY_PATH": str(wrong)}
    return msgspec.structs.replace(around, env=env), f"{len(names)} names in LD_LIBRARY_PATH"


def _preload(around: Surroundings, _: PackageUnderTest, __: Path) -> tuple[Surroundings, str]:
    found = [path for pattern in load_hostility().preloads for path in glob(pattern)]  # noqa: PTH207
    if not found:
        msg = "the system has no libgomp"
        raise _ImpossibleError(msg)
    env = around.env | {"LD_PRELOAD": found[0]}
    return msgspec.structs.replace(around, env=env), f"{found[0]} in LD_PRELOAD"


def _evict(around: Surroundings, _: PackageUnderTest, folder: Path) -> tuple[Surroundings, str]:
    """Hide the home directory, not just HOME: otherwise the caller's would still be found."""
    env = {name: value for name, value in around.env.items() if name != "HOME"}
    around = msgspec.structs.replace(around, env=env)
    users = folder / "passwd"
    users.write_text(f"nobody:x:{os.getuid()}:{os.getgid()}::{os.devnull}:/bin/sh\n", "utf-8")
    try:
        around = _shut_in(around, "--ro-bind", str(users), "/etc/passwd")
    except _ImpossibleError as error:
        return around, f"HOME is not set; the user still has one: {error}"
    return around, "HOME is not set, and bwrap lets the user have none"


def _freeze(around: Surroundings, _: PackageUnderTest, __: Path) -> tuple[Surroundings, str]:
    prefix = around.installation.prefix
    return _shut_in(around, "--ro-bind", prefix, prefix), "bwrap binds the environment read-only"


def _cut_off(around: Surroundings, _: PackageUnderTest, __: Path) -> tuple[Surroundings, str]:
    return _shut_in(around, "--unshare-net"), "bwrap gives it a network without any other machine"


def _shut_in(around: Surroundings, *words: str) -> Surroundings:
    """Return the surroundings with additional bwrap options, if bwrap works here."""
    try:
        wrapper = around.wrapper or tuple(whole_machine())
    except HostError as error:
        raise _ImpossibleError(str(error)) from error
    if fault := bubblewrap_fault([*wrapper, *words]):
        raise _ImpossibleError(fault)
    return msgspec.structs.replace(around, wrapper=(*wrapper, *words))
