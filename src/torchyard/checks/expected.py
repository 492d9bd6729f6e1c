"""What a package should be: what its name promises, and its order, if it carries one."""

import re
from collections.abc import Iterable
from typing import assert_never
from urllib.parse import unquote

import msgspec
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from torchyard.checks.metadata_reader import conda_index, metadata_fields, values
from torchyard.config.tables import load_tables
from torchyard.model.job_spec import ORDER, JobSpec
from torchyard.model.values import Value
from torchyard.package.contents import Contents, Kind

_ZIP = re.compile(r"(?P<name>lib[^-]+)-(?:.+-)?(?P<version>\d[^-]*)(?:-debug)?\.zip")
_CONDA = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)-(?P<build>[^-]+)\.(?:conda|tar\.bz2)")
_LOCAL = re.compile(r"(?:cpu|cu\d+|rocm\d+(?:\.\d+)*|xpu)(?![^.])")
_BUILD = re.compile(r"(?P<cpu>cpu)_|cuda(?P<cuda>\d{3})")
_PYTHON_ABI = re.compile(r"python_abi .* \*_(?P<abi>cp\d+t?)")
_PINNED = re.compile(r"==(?P<major>\d+)\.(?P<minor>\d+)")

_ORDER = msgspec.json.Decoder(JobSpec)

_TOOLKIT = ("cuda-toolkit", "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12", "nvidia-cublas-cu12")
"""Wheels whose version begins as that of the toolkit they belong to, the surest first."""


class Expected(Value, kw_only=True):
    """What is known without looking at any library; empty where nothing is said.

    `archs` are as in the matrix: `9.0`, `9.0+PTX`, `gfx90a`.
    """

    name: str = ""
    version: str = ""
    """With its local part: `2.13.0+cu130`."""
    python: str = ""
    abi: str = ""
    platforms: tuple[str, ...] = ()
    """The platform tags of a wheel, or the subdir of a conda package."""
    compute: str = ""
    """cpu, cu130, rocm7.2 …, by the local version or the order; else by what the package needs."""
    archs: tuple[str, ...] = ()
    pins: dict[str, str] = {}
    """Versions of CUDA's libraries that the order's tables ask for."""


def expected_of(contents: Contents) -> Expected:
    """Read a package's name and its order."""
    match contents.kind:
        case Kind.WHEEL:
            expected = _of_wheel(contents)
        case Kind.CONDA:
            expected = _of_conda(contents)
        case Kind.ZIP:
            expected = _of_zip(contents)
        case _:
            assert_never(contents.kind)
    order = order_of(contents)
    return expected if order is None else _as_ordered(expected, order)


def _of_wheel(contents: Contents) -> Expected:
    try:
        name, version, _, _ = parse_wheel_filename(contents.file_name)
    except ValueError:
        return Expected(compute=_required_compute(contents))
    python, abi, platforms = contents.file_name.removesuffix(".whl").split("-")[-3:]
    return Expected(
        name=name,
        version=str(version),
        python=python,
        abi=abi,
        platforms=tuple(platforms.split(".")),
        compute=local_compute(str(version)) or _required_compute(contents),
    )


def _of_conda(contents: Contents) -> Expected:
    named = _CONDA.fullmatch(contents.file_name)
    index = conda_index(contents)
    found = _BUILD.match(named["build"]) if named else None
    abis = (_PYTHON_ABI.fullmatch(need) for need in (index.depends if index else ()))
    abi = next((match["abi"] for match in abis if match), "")
    return Expected(
        name=named["name"] if named else "",
        version=named["version"] if named else "",
        python=abi.removesuffix("t"),
        abi=abi,
        platforms=(index.subdir,) if index and index.subdir else (),
        compute=(found["cpu"] or f"cu{found['cuda']}") if found else "",
    )


def _of_zip(contents: Contents) -> Expected:
    named = _ZIP.fullmatch(unquote(contents.file_name))
    if named is None:
        return Expected()
    version = named["version"]
    return Expected(name=named["name"], version=version, compute=local_compute(version))


def local_compute(version: str) -> str:
    """The compute that a version names: cu130 of `2.14.0+cu130`; nothing if it names none."""
    try:
        found = _LOCAL.match(Version(version).local or "")
    except ValueError:
        return ""
    return found[0] if found else ""


def _required_compute(contents: Contents) -> str:
    """The CUDA whose wheels are asked for by their version."""
    pinned: dict[str, str] = {}
    for text in values(metadata_fields(contents), "Requires-Dist"):
        try:
            requirement = Requirement(text)
            found = _PINNED.match(str(requirement.specifier))
        except (ValueError, RecursionError):
            continue
        if found and "extra" not in str(requirement.marker or ""):
            pinned[requirement.name] = f"cu{found['major']}{found['minor']}"
    return next((pinned[name] for name in _TOOLKIT if name in pinned), "")


def order_of(contents: Contents) -> JobSpec | None:
    """The order from which torchyard made a package, if it carries one that can be read."""
    text = order_text(contents)
    if text is None:
        return None
    try:
        return _ORDER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def order_text(contents: Contents) -> bytes | None:
    """The text of the order that a package carries."""
    places = (name for name in contents.texts if name.rpartition("/")[2] == ORDER)
    place = min(places, key=lambda name: name.count("/"), default=None)
    return None if place is None else contents.texts[place]


def _as_ordered(expected: Expected, order: JobSpec) -> Expected:
    """Lay what was ordered over what the name says."""
    if not order.tasks:
        return expected
    archs = next((words for task in order.tasks if (words := task.words("archs"))), [])
    pins = {
        name: task.text(name) for task in order.tasks for name in _pin_names() if task.text(name)
    }
    try:
        compute = order.task.facts.get("compute", "")
    except ValueError:  # a scope that no plan would write
        compute = ""
    return msgspec.structs.replace(
        expected, compute=compute or expected.compute, archs=tuple(archs), pins=pins
    )


def _pin_names() -> Iterable[str]:
    """What the tables of releases pin."""
    rows = (
        row for release in load_tables().releases.values() for row in release.libraries.values()
    )
    return sorted({name for row in rows for name in row} | {"triton"})
