"""A package to be tried: what its file says, before anything is installed."""

import io
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from torchyard.errors import HostError
from torchyard.model.matrix import any_match
from torchyard.model.values import Value
from torchyard.package.contents import Kind
from torchyard.package.policy import ComputeRow, load_layouts

_COMPUTE = re.compile(r"\+(cpu|xpu|cu\d+|rocm[\d.]+)")
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")


class Specimen(Value, kw_only=True):
    """A package, by its name and what it says about itself."""

    path: str
    kind: Kind
    name: str
    version: str = ""
    build: str = ""
    """Of a conda package."""
    subdir: str = ""
    compute: str = ""
    """cpu, cu130, rocm7.2 …, or `cu13` if only that is known; empty if nothing tells."""
    requires: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        return Path(self.path).name

    @property
    def title(self) -> str:
        """For tables of known failures: `torch-2.13.0+cpu`."""
        return f"{self.name}-{self.version}" if self.version else self.name

    @property
    def tags(self) -> frozenset[Tag]:
        """Which Pythons and systems a wheel is for."""
        return parse_wheel_filename(self.file)[3]


def read_specimen(path: Path) -> Specimen:
    """See what a package is, without unpacking it."""
    try:
        if path.suffix == ".whl":
            return _wheel(path)
        if path.suffix == ".conda":
            return _conda(path)
        if path.suffix == ".zip":
            return _zip(path)
    except FileNotFoundError as error:
        msg = f"there is no file `{path}`"
        raise HostError(msg) from error
    except (zipfile.BadZipFile, InvalidWheelFilename, KeyError, ValueError) as error:
        msg = f"`{path}` can't be read as a package: {error}"
        raise HostError(msg, hint="`torchyard check` tells what is wrong with it") from error
    msg = f"`{path}` is no package that can be tried"
    raise HostError(msg, hint="give wheels, .conda packages or libtorch zips")


def _wheel(path: Path) -> Specimen:
    name, version, _, _ = parse_wheel_filename(path.name)
    with zipfile.ZipFile(path) as archive:
        (member,) = fnmatch_members(archive, "*.dist-info/METADATA")
        metadata = HeaderParser().parsestr(archive.read(member).decode())
    requires = tuple(metadata.get_all("Requires-Dist") or ())
    return Specimen(
        path=str(path.resolve()),
        kind=Kind.WHEEL,
        name=name,
        version=metadata["Version"] or str(version),
        compute=_compute(path.name, requires),
        requires=requires,
    )


class _Index(msgspec.Struct):
    """The part of a conda package's `index.json` that matters here."""

    name: str
    version: str
    build: str
    subdir: str
    depends: tuple[str, ...] = ()


def _conda(path: Path) -> Specimen:
    index = msgspec.json.decode(read_info(path, "index.json"), type=_Index)
    label = re.match(r"(cpu|cuda\d+|rocm\d+|xpu)", index.build)
    return Specimen(
        path=str(path.resolve()),
        kind=Kind.CONDA,
        name=index.name,
        version=index.version,
        build=index.build,
        subdir=index.subdir,
        compute=label[1].replace("cuda", "cu") if label else "",
        requires=index.depends,
    )


def read_info(path: Path, name: str) -> bytes:
    """A file of what a conda package says about itself."""
    with zipfile.ZipFile(path) as archive:
        (member,) = fnmatch_members(archive, "info-*.tar.zst")
        packed = archive.read(member)
    with tarfile.open(fileobj=io.BytesIO(_unpacked(packed))) as info:
        file = info.extractfile(f"info/{name}")
        return file.read() if file else b""


def _unpacked(packed: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415 - only conda packages need it
    else:
        from backports import zstd  # noqa: PLC0415
    return zstd.decompress(packed)


def _zip(path: Path) -> Specimen:
    with zipfile.ZipFile(path) as archive:
        versions = fnmatch_members(archive, "*/build-version")
        version = archive.read(versions[0]).decode().strip() if versions else ""
        roots = dict.fromkeys(name.partition("/")[0] for name in archive.namelist())
    return Specimen(
        path=str(path.resolve()),
        kind=Kind.ZIP,
        name=next(iter(roots)) if len(roots) == 1 else path.stem.partition("-")[0],
        version=version,
        compute=_compute(version or path.name, ()),
    )


def fnmatch_members(archive: zipfile.ZipFile, pattern: str) -> list[str]:
    """The members of a zip whose names fit, none of them deeper than the pattern."""
    return [
        name
        for name in archive.namelist()
        if name.count("/") == pattern.count("/") and fnmatchcase(name, pattern)
    ]


def _compute(label: str, requires: tuple[str, ...]) -> str:
    """By the version's label; or else by the wheels with CUDA's libraries that it needs."""
    found = _COMPUTE.search(label)
    if found:
        return found[1]
    names: set[str] = {
        canonicalize_name(match[0]) for match in map(_REQUIREMENT.match, requires) if match
    }
    return next(_computes_needing(names), "")


def _computes_needing(names: set[str]) -> Iterator[str]:
    for name, row in load_layouts().compute.items():
        brought = {wheel.distribution for wheel in row.wheels}
        by_toolkit = "cuda-toolkit" in names and any(wheel.extra for wheel in row.wheels)
        if by_toolkit or not names.isdisjoint(brought):
            yield name.replace("cuda", "cu")


def compute_row(compute: str) -> ComputeRow | None:
    """What is known of the libraries of a compute platform; `cu13` is any CUDA 13."""
    for name, row in load_layouts().compute.items():
        if any_match(compute, row.names) or name.replace("cuda", "cu") == compute:
            return row
    return None
