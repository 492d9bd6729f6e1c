"""Torch releases missing from the tables, read from their wheels in an index."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from packaging.utils import canonicalize_name
from packaging.version import Version

from torchyard.checks.compat.toolkits import parse_requirements
from torchyard.compute.registry import PLAIN, compute_in, compute_of_wheels, platform_for
from torchyard.config.matrix import named_values
from torchyard.config.spec import FileSpec
from torchyard.errors import HostError
from torchyard.host.remote_file import RemoteFile
from torchyard.index.simple.project_files import ListedWheel
from torchyard.model.matrix import any_match
from torchyard.model.recipe import Dimension
from torchyard.model.tables import Release, Tables
from torchyard.model.version import version_numbers
from torchyard.package.wheel.manylinux import promised_glibc
from torchyard.package.wheel.metadata import fields_of, values
from torchyard.package.wheel.parts import WheelParts

_ARCHS_IN = "torch/lib/libtorch_python.so"
"""The library that contains the text of `torch.cuda.get_arch_list()`."""
_PINNING = ("==", "~=")


class IndexedRelease(NamedTuple):
    """A torch release of an index: its newest version, and its row for the tables."""

    version: str
    row: Release


class TorchBuild(NamedTuple):
    """What a torch wheel was built with; `compute` is empty for CPU wheels."""

    compute: str
    libraries: Mapping[str, str]
    triton: str
    archs: tuple[str, ...]


def matrix_wheels(spec: FileSpec, tables: Tables) -> tuple[dict[str, str], list[str]]:
    """Return the platforms of a matrix with their wheel tags, and its GPU compute platforms."""
    asked = set(named_values(spec.matrix, Dimension.PLATFORM))
    platforms = {name: row.wheel_tag for name, row in tables.platforms.items() if name in asked}
    computes = dict.fromkeys(named_values(spec.matrix, Dimension.COMPUTE))
    return platforms, [name for name in computes if platform_for(name).is_gpu]


def find_indexed_release(
    name: str,
    wheels: Sequence[ListedWheel],
    *,
    platforms: Mapping[str, str],
    computes: Collection[str],
) -> IndexedRelease:
    """Read parts of the wheels of a release, and return what they say about it.

    Args:
        name: The release, such as 2.15.
        wheels: All torch wheels of an index.
        platforms: The platforms of a matrix, with their wheel tags.
        computes: The GPU compute platforms of a matrix; if empty, no wheel is read.
    """
    wheels = _newest(name, wheels, platforms.values())
    version = wheels[0].version.public
    builds: dict[str, list[TorchBuild]] = {}
    for platform, tag in platforms.items():
        there = [wheel for wheel in wheels if _fits(wheel, tag)]
        chosen = dict.fromkeys(_wheel_for(compute, there) for compute in computes)
        found = [_build_of(wheel) for wheel in chosen if wheel is not None]
        builds[platform] = [build for build in found if build.compute]
    return IndexedRelease(version, _row(wheels, builds))


def _build_of(wheel: ListedWheel) -> TorchBuild:
    return read_torch_build(WheelParts(RemoteFile(wheel.url)), wheel.version.local or "")


def _row(wheels: Iterable[ListedWheel], builds: Mapping[str, Sequence[TorchBuild]]) -> Release:
    """Return the row of a release, from its wheels and its build on each platform."""
    every = {build.compute: build for found in builds.values() for build in found}
    archs: dict[str, dict[str, tuple[str, ...]]] = {}
    for platform, found in builds.items():
        for build in found:
            if build.archs:
                archs.setdefault(build.compute, {})[platform] = build.archs
    pythons = {tag.abi for wheel in wheels for tag in wheel.tags}
    return Release(
        libraries={compute: dict(build.libraries) for compute, build in every.items()},
        triton={compute: build.triton for compute, build in every.items() if build.triton},
        pythons=tuple(sorted(pythons, key=_by_version)),
        archs=archs,
    )


def _newest(name: str, wheels: Iterable[ListedWheel], tags: Collection[str]) -> list[ListedWheel]:
    """Return the wheels of a release's newest version that fit any platform."""
    finals = [wheel for wheel in wheels if not wheel.version.is_prerelease]
    fitting = [
        wheel
        for wheel in finals
        if ".".join(map(str, wheel.version.release[:2])) == name
        and any(_fits(wheel, tag) for tag in tags)
    ]
    if not fitting:
        minors = {".".join(map(str, wheel.version.release[:2])) for wheel in finals}
        newest = ", ".join(sorted(minors, key=Version)[-3:]) or "none at all"
        msg = f"no index of this machine has wheels of torch {name} for {', '.join(sorted(tags))}"
        raise HostError(
            msg, hint=f"its newest releases are {newest}; uv's settings name the indexes"
        )
    version = max(Version(wheel.version.public) for wheel in fitting)
    return [wheel for wheel in fitting if Version(wheel.version.public) == version]


def _fits(wheel: ListedWheel, platform_tag: str) -> bool:
    return any(is_installable(tag.platform, platform_tag) for tag in wheel.tags)


def is_installable(tag: str, platform_tag: str) -> bool:
    """Return whether wheels with a tag install on a platform: same system, glibc not newer."""
    here, found = promised_glibc(platform_tag), promised_glibc(tag)
    if not here or not found:
        return False
    machine = platform_tag.removeprefix(f"manylinux_{here.replace('.', '_')}")
    return tag.endswith(machine) and version_numbers(found) <= version_numbers(here)


def _wheel_for(compute: str, wheels: Iterable[ListedWheel]) -> ListedWheel | None:
    """Return a wheel with a compute platform's name in its version, or else one without."""
    for local in (compute, None):
        found = [wheel for wheel in wheels if wheel.version.local == local]
        if found:
            return min(found, key=lambda wheel: wheel.url)
    return None


def read_torch_build(wheel: WheelParts, local: str) -> TorchBuild:
    """Read what a torch wheel was built with; `local` is its local version."""
    required = parse_requirements(values(fields_of(wheel.metadata), "Requires-Dist"))
    pins: dict[str, str] = {
        canonicalize_name(requirement.name): pin.version
        for requirement in required
        for pin in requirement.specifier
        if pin.operator in _PINNING
    }
    named = compute_in(local)
    compute = "" if named == PLAIN else named or compute_of_wheels(pins)
    platform = platform_for(compute)
    libraries = platform.libraries().values()
    rules = [library for library in libraries if any_match(compute, library.names)]
    return TorchBuild(
        compute=compute,
        libraries={
            row.pin: pins[row.distribution]
            for library in rules
            for row in library.wheels
            if row.pin and row.distribution in pins
        },
        triton=next((pins[library.triton] for library in rules if library.triton in pins), ""),
        archs=platform.archs_of(_codes(wheel, platform.device_code)),
    )


def _codes(wheel: WheelParts, code: str) -> list[str]:
    """Return the architectures that a torch library lists."""
    if not code or _ARCHS_IN not in wheel.members:
        return []
    pattern = re.compile(rf"\0({code}(?: {code})*)\0".encode())
    return wheel.search(_ARCHS_IN, pattern).split()


def _by_version(tag: str) -> tuple[int, str]:
    digits = re.sub(r"\D", "", tag)
    return int(digits or 0), tag
