"""The file names of conda packages: NAME-VERSION-BUILD.conda, or .tar.bz2."""

import re
from typing import NamedTuple

SUFFIX = ".conda"
OLD_SUFFIX = ".tar.bz2"
SUFFIXES: tuple[str, ...] = (SUFFIX, OLD_SUFFIX)

_REQUIRED = re.compile(r"(?:[^\s:]*::)?([\w.-]+)")


class CondaName(NamedTuple):
    """The parts of a conda package's file name."""

    name: str
    version: str
    build: str


def conda_name(file_name: str) -> str:
    """Return the name of a package: `libtorch` for `libtorch-2.14.0-cpu_mkl_h27e4f09_100.conda`."""
    return file_name.rsplit("-", 2)[0]


def required_name(spec: str) -> str:
    """Return the name of the package that a requirement is for, without its channel."""
    found = _REQUIRED.match(spec.strip())
    return found[1].lower() if found else ""


def requirement_name(package: str) -> str:
    """Return the name of a package in PEP 508 form: `openmp_mutex` for `_openmp_mutex`."""
    return package.removeprefix("_")


def split_conda_name(file_name: str) -> CondaName:
    """Return the name, version and build in a conda package's file name."""
    stem = conda_stem(file_name)
    rest, _, build = stem.rpartition("-")
    name, _, version = rest.rpartition("-")
    return CondaName(name, version, build)


def conda_stem(file_name: str) -> str:
    return file_name.removesuffix(SUFFIX).removesuffix(OLD_SUFFIX)
