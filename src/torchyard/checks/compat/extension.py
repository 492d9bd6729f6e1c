"""A wheel with an extension: the needs of its libraries."""

from functools import lru_cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from torchyard.checks.compat.abi import MeasuredAbi, measure_abi
from torchyard.checks.compat.stable_names import Release, show_release
from torchyard.checks.compat.table import TORCH
from torchyard.checks.compat.toolkits import parse_requirements, required_toolkits
from torchyard.checks.compat.undefined import Undefined, undefined_in
from torchyard.checks.expected import local_compute
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.subject import Subject
from torchyard.model.values import Value
from torchyard.package.contents import Contents, PackageFile, is_library
from torchyard.package.wheel.compatible_tags import tag_platforms
from torchyard.package.wheel.metadata import NAME, is_wheel, metadata_fields, values
from torchyard.package.wheel.name import ABI3, WheelName
from torchyard.package.wheel.parts import WheelParts

_PATCHES = range(10)
"""The patch releases of a release; it is admitted if any of them is."""


class ExtensionLibrary(Value, kw_only=True):
    """A library of a wheel, and its needs from outside the wheel."""

    member: str
    needed: tuple[str, ...]
    undefined: tuple[Undefined, ...]


class ExtensionWheel(Value, kw_only=True):
    """A wheel and its declarations."""

    name: WheelName
    libraries: tuple[ExtensionLibrary, ...]
    requires_torch: str | None
    """The versions of torch that it declares, such as `>=2.10`; None if it declares no torch."""
    toolkits: tuple[str, ...] = ()
    """The toolkits of its declared wheels, such as `CUDA 12`."""
    abi: MeasuredAbi

    def admits(self, version: str) -> bool:
        """Return whether its metadata admits a release of torch."""
        return SpecifierSet(self.requires_torch or "").contains(version, prereleases=True)

    def can_be_beside(self, torch: str) -> bool:
        """Return whether a torch wheel is for the same Python and machine."""
        other = WheelName.parse(torch)
        same_python = not self.name.abi.startswith("cp") or other.python == self.name.python
        return same_python and not _platforms(self.name).isdisjoint(_platforms(other))

    def is_beside(self, torch: str) -> bool:
        """Return whether a torch wheel is for the same Python, machine and compute platform."""
        compute = local_compute(WheelName.parse(torch).version)
        return self.can_be_beside(torch) and compute == local_compute(self.name.version)


def _platforms(name: WheelName) -> set[str]:
    return {platform for tag in name.platform.split(".") for platform in tag_platforms(tag)}


def read_extension(wheel: WheelParts) -> ExtensionWheel:
    """Read the libraries and requirements of a wheel."""
    files = {
        name: PackageFile(name=name, size=0, binary=wheel.binary(name))
        for name in wheel.libraries()
    }
    about = {"_.dist-info/METADATA": wheel.metadata}
    contents = Contents(file_name=wheel.name, format=NAME, size=0, files=files, texts=about)
    return wheel_extension(Subject(contents, CheckPolicy()))


def is_named(subject: Subject) -> bool:
    """Return whether a package is a wheel with a valid name; a rule reports invalid ones."""
    return is_wheel(subject.contents) and bool(subject.expected.version)


@lru_cache(maxsize=1)
def wheel_extension(subject: Subject) -> ExtensionWheel:
    """Return the needs of a wheel's libraries, for `check` and `compat`."""
    files = subject.contents.files
    binaries = {n: file.binary for n, file in files.items() if file.binary and is_library(n)}
    beside = {member.rpartition("/")[2] for member in binaries}
    beside |= {binary.soname for binary in binaries.values()}
    undefined = undefined_in(subject)
    libraries = (
        ExtensionLibrary(
            member=member,
            needed=tuple(name for name in binary.needed if name not in beside),
            undefined=undefined.get(member, ()),
        )
        for member, binary in binaries.items()
    )
    required = values(metadata_fields(subject.contents), "Requires-Dist")
    name = WheelName.parse(subject.contents.file_name)
    return ExtensionWheel(
        name=name,
        libraries=tuple(libraries),
        requires_torch=torch_versions(required),
        toolkits=tuple(sorted(required_toolkits(required))),
        abi=measure_abi(binaries, is_abi3=ABI3 in name.abi.split(".")),
    )


def torch_versions(required: list[str]) -> str | None:
    """Return the declared versions of torch, without extras."""
    found = [
        str(requirement.specifier)
        for requirement in parse_requirements(required)
        if canonicalize_name(requirement.name) == TORCH
    ]
    return ",".join(filter(None, found)) if found else None


def declared_torch(subject: Subject) -> str | None:
    """Return the torch versions that a wheel requires; None if it requires no torch."""
    return torch_versions(values(metadata_fields(subject.contents), "Requires-Dist"))


def admitted_releases(subject: Subject, releases: list[Release]) -> list[Release]:
    """Return the torch releases that a wheel's requirements admit."""
    try:
        versions = SpecifierSet(declared_torch(subject) or "")
    except InvalidSpecifier:
        return []  # a rule about METADATA reports it
    return [
        release
        for release in releases
        if any(versions.contains(f"{show_release(release)}.{patch}") for patch in _PATCHES)
    ]
