"""How packages and their versions are called. Nothing here reads or writes anything."""

import re
from typing import NamedTuple

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from torchyard.errors import ConfigError

_CUDA_OFFSET = 200
_MKL_OFFSET = 100
"""The feedstock's offsets: conda prefers high build numbers, so CUDA and MKL where they run."""

_HASH_LENGTH = 7
"""How much of a digest conda puts into a build string."""


class Tags(NamedTuple):
    """The first two tags of a wheel."""

    python: str
    abi: str


def nightly_version(version: str, date: str) -> str:
    """The version of a day's build: `2.14.0.dev20261114`, with a date of eight digits."""
    return str(_version(f"{version}.dev{date}"))


def local_version(version: str, compute: str) -> str:
    """A version with the compute platform that it is built for: `2.13.0+cu130`."""
    if _version(version).local:
        msg = f"the version `{version}` says already what it is built for"
        raise ConfigError(msg, hint="leave out what follows the `+`; the compute goes there")
    return str(_version(f"{version}+{compute}"))


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion as error:
        msg = f"`{text}` is no version of a Python package"
        raise ConfigError(msg, hint="versions look like 2.14.0, 2.14.0rc1 or 2.14.0+cpu") from error


def wheel_tags(python: str) -> Tags:
    """The tags of a Python as `data/pythons.toml` names it: `cp313t` is the ABI of `cp313`."""
    return Tags(python.removesuffix("t"), python)


def wheel_stem(name: str, version: str) -> str:
    """The beginning of a wheel's name and of its folders: `my_torch-1.2.0+cpu`."""
    return f"{canonicalize_name(name).replace('-', '_')}-{_version(version)}"


def wheel_name(name: str, version: str, tags: Tags, platform_tag: str) -> str:
    return f"{wheel_stem(name, version)}-{tags.python}-{tags.abi}-{platform_tag}.whl"


def libtorch_name(name: str, version: str) -> str:
    """The name of the zip for C++: `libtorch-shared-with-deps-2.13.0+cu130.zip`."""
    return f"lib{name}-shared-with-deps-{_version(version)}.zip"


def conda_build_number(base: int, *, compute: str, blas: str) -> int:
    """The feedstock's number: 200 more for CUDA, 100 more for MKL, 300 more for both."""
    cuda = _CUDA_OFFSET if _is_cuda(compute) else 0
    return base + cuda + (_MKL_OFFSET if blas == "mkl" else 0)


def conda_build_string(
    *, compute: str, blas: str, digest: str, number: int, python: str | None = None
) -> str:
    """The feedstock's build string: `cuda130_generic_py312_h1234567_200`.

    The number is that of :func:`conda_build_number`. A free-threaded Python is told apart by the
    digest, as it is there.
    """
    flavour = compute.replace("cu", "cuda", 1) if _is_cuda(compute) else compute.replace(".", "")
    version = f"py{wheel_tags(python).python.removeprefix('cp')}_" if python else ""
    return f"{flavour}_{blas}_{version}h{digest[:_HASH_LENGTH]}_{number}"


def _is_cuda(compute: str) -> bool:
    return re.fullmatch(r"cu\d+", compute) is not None
