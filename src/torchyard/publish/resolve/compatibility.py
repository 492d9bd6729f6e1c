"""Compare a package with a machine: grade it, or return the first reason against it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, mac_platforms
from packaging.utils import BuildTag, InvalidWheelFilename, parse_wheel_filename

from torchyard.compute.registry import platform_for
from torchyard.index.conda.record import conda_record
from torchyard.index.conda.section import CondaSection
from torchyard.index.entry import Entry, cell_of
from torchyard.index.libtorch.section import LibtorchSection
from torchyard.index.section import ANY_PLATFORM, ChannelSection
from torchyard.index.sections import fits_of
from torchyard.index.simple.section import SimpleSection
from torchyard.index.views import admits_torch, torch_label
from torchyard.model.tables import Tables
from torchyard.model.values import Reported
from torchyard.model.version import version_numbers
from torchyard.package.libtorch.format import zip_build
from torchyard.package.libtorch.write import lacks_deps
from torchyard.package.wheel.compatible_tags import python_tags, runs_on
from torchyard.package.wheel.name import wheel_build

_NEWEST_GLIBC = 99  # for machines whose glibc is unknown
_NEWEST_MAC = (99, 0)  # the same for macOS
_OLD_NAMES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}


class MachineFacts(Reported, kw_only=True):
    """Facts of a machine; empty means absent, but unknown for glibc."""

    python: str
    platform: str
    glibc: str = ""
    gpu: dict[str, str] = {}
    """Facts of its GPUs, by the compute platforms' names."""
    torch: str = ""
    """The version of its torch without a local part, or a release such as `2.13`."""
    torch_compute: str = ""
    """The compute platform of its torch."""

    @property
    def has_gpu(self) -> bool:
        return any(self.gpu.values())


class Reason(StrEnum):
    """Reasons against a package."""

    SPEC = "spec"
    YANKED = "yanked"
    REQUIRES_PYTHON = "requires-python"
    PYTHON = "python"
    ABI = "abi"
    PLATFORM = "platform"
    GLIBC = "glibc"
    COMPUTE = "compute"
    TORCH = "torch"
    PRERELEASE = "prerelease"
    OLDER = "older"
    LESSER = "lesser"
    UNREADABLE = "unreadable"


class Misfit(NamedTuple):
    """A reason, and a sentence that explains it."""

    reason: Reason
    why: str


class Grade(NamedTuple):
    """How well a package fits; higher is better."""

    support: int = 0
    """2 for a present GPU, 1 if only its driver's family fits, 0 for processors."""
    compute: tuple[int, ...] = ()
    torch: tuple[int, ...] = ()
    """The release of torch that it is compiled against, or the oldest it accepts."""
    blas: int = 0
    tag: int = 0
    build: BuildTag = ()
    """The build tag of a wheel, or the build number of a zip."""


def _build(section: ChannelSection, file: str) -> BuildTag:
    """Return the build of a package; conda's are graded by their number."""
    if section.NAME == SimpleSection.NAME:
        return wheel_build(file)
    return (zip_build(file), "") if section.NAME == LibtorchSection.NAME else ()


class Fitter:
    """Compares packages with a machine."""

    def __init__(self, facts: MachineFacts, tables: Tables) -> None:
        self.facts = facts
        self.tables = tables

    def try_on(self, section: ChannelSection, subdir: str, entry: Entry) -> Misfit | Grade:
        """Compare a file's tags and requirements with the machine."""
        found = self._label(section, subdir, entry)
        if isinstance(found, Misfit):
            return found
        compute, blas = flavour_of(entry)
        graded = self._torch(entry, compute) or self._compute(compute)
        if isinstance(graded, Misfit):
            return graded
        known = self.tables.platforms[self.facts.platform].blas
        rank = -known.index(blas) if blas in known else -len(known)
        return graded._replace(
            torch=version_numbers(torch_label(entry.torch)),
            blas=rank,
            tag=found,
            build=_build(section, entry.file),
        )

    def _label(self, section: ChannelSection, subdir: str, entry: Entry) -> Misfit | int:
        """Return why a file's tags do not fit, or how well they do, ignoring its compute.

        By default, a section's files have to fit the platform. Self-contained zips come before
        others.
        """
        if section.NAME == SimpleSection.NAME:
            return self._python_range(entry) or self._wheel(entry.file)
        if section.NAME == CondaSection.NAME:
            return self._conda(subdir, entry)
        return self._platform(section, subdir, entry) or -lacks_deps(entry.file)

    def _python_range(self, entry: Entry) -> Misfit | None:
        try:
            wanted = SpecifierSet(entry.requires_python)
        except InvalidSpecifier:
            return Misfit(Reason.UNREADABLE, "its Requires-Python can't be read")
        version = self.tables.pythons[self.facts.python].version
        # Installers compare the full version; the last patch release is the most permissive.
        if any(wanted.contains(f"{version}.{patch}") for patch in (0, 99)):
            return None
        return Misfit(Reason.REQUIRES_PYTHON, f"wants Python {entry.requires_python}")

    @cached_property
    def _supported(self) -> Mapping[Tag, int]:
        tags = python_tags(self.facts.python, _platforms(self.facts, self.tables))
        return {tag: -rank for rank, tag in enumerate(tags)}

    def _wheel(self, file: str) -> Misfit | int:
        try:
            *_, tags = parse_wheel_filename(file)
        except InvalidWheelFilename:
            return Misfit(Reason.UNREADABLE, "its name is not a wheel's")
        ranks = [self._supported[tag] for tag in tags if tag in self._supported]
        if ranks:
            return max(ranks)
        if not any(runs_on(self.facts.python, tag) for tag in tags):
            own = self.facts.python.removesuffix("t")
            if any(tag.interpreter == own for tag in tags):
                return Misfit(Reason.ABI, f"is for the ABI {_join(tag.abi for tag in tags)}")
            return Misfit(Reason.PYTHON, f"is for Python {_join(tag.interpreter for tag in tags)}")
        return self._wrong_platform([tag.platform for tag in tags])

    def _wrong_platform(self, platforms: Sequence[str]) -> Misfit:
        machine = self.facts.platform.partition("-")[2]
        for platform in platforms:
            found = re.fullmatch(r"manylinux_(\d+)_(\d+)_(\w+)", platform)
            if found and self.facts.platform.startswith("linux-") and found[3] == machine:
                return Misfit(Reason.GLIBC, f"needs glibc {found[1]}.{found[2]}")
        return Misfit(Reason.PLATFORM, f"is for {_join(platforms)}")

    def _conda(self, subdir: str, entry: Entry) -> Misfit | int:
        """Grade a conda package; solvers choose the highest fitting build number."""
        if subdir not in (
            CondaSection.FIRST_PART,
            self.tables.platforms[self.facts.platform].conda_subdir,
        ):
            return Misfit(Reason.PLATFORM, f"is for {subdir}")
        record = conda_record(entry)
        depends = " , ".join(record.depends)
        python = re.search(r"\bpython_abi (\d+\.\d+)\.\*(?: \*_(\w+))?", depends)
        here = self.tables.pythons[self.facts.python].version
        if python and python[1] != here:
            return Misfit(Reason.PYTHON, f"is for Python {python[1]}")
        if python and python[2] and python[2] != self.facts.python:
            return Misfit(Reason.ABI, f"is for the ABI {python[2]}")
        glibc = re.search(r"\b__glibc >=(\d+\.\d+)", depends)
        if (
            glibc
            and self.facts.glibc
            and version_numbers(glibc[1]) > version_numbers(self.facts.glibc)
        ):
            return Misfit(Reason.GLIBC, f"needs glibc {glibc[1]}")
        return record.build_number

    def _platform(self, section: ChannelSection, subdir: str, entry: Entry) -> Misfit | None:
        fits = fits_of(f"{section.NAME}/{subdir}", entry)
        platforms = list(dict.fromkeys(fit.platform for fit in fits))
        if {self.facts.platform, ANY_PLATFORM} & set(platforms):
            return None
        return Misfit(Reason.PLATFORM, f"is for {_join(platforms)}")

    def _torch(self, entry: Entry, compute: str) -> Misfit | Grade | None:
        """Compare an extension with the machine's torch; return None if that decides nothing.

        An extension must be for the compute of its torch, whatever GPUs the machine has.
        """
        if not (self.facts.torch and entry.torch):
            return None
        if not admits_torch(entry.torch, self.facts.torch):
            return Misfit(Reason.TORCH, f"is for torch {torch_label(entry.torch)}")
        if not (self.facts.torch_compute and compute):
            return None
        if compute != self.facts.torch_compute:
            return Misfit(Reason.TORCH, f"is for a torch with {compute}")
        return Grade()

    def _compute(self, compute: str) -> Misfit | Grade:
        found = platform_for(compute).support(compute, self.facts.gpu, self.facts.platform)
        if isinstance(found, str):
            return Misfit(Reason.COMPUTE, found)
        return Grade(found.level, found.version)


def flavour_of(entry: Entry) -> tuple[str, str]:
    """Return the compute platform and BLAS of a file, if any."""
    cell = cell_of(entry)
    if cell:
        return cell.compute, cell.variant
    compute, _, blas = entry.variant.partition("-")
    return compute, blas


def _platforms(facts: MachineFacts, tables: Tables) -> list[str]:
    """Return the platform tags that a machine supports, the best first."""
    system, _, machine = facts.platform.partition("-")
    if system == "macos":
        return list(mac_platforms(_NEWEST_MAC, machine))
    if system != "linux":
        return [tables.platforms[facts.platform].wheel_tag]
    newest = version_numbers(facts.glibc)[1] if facts.glibc else _NEWEST_GLIBC
    platforms = []
    for minor in range(newest, min(_OLD_NAMES) - 1, -1):
        platforms.append(f"manylinux_2_{minor}_{machine}")
        if minor in _OLD_NAMES:
            platforms.append(f"{_OLD_NAMES[minor]}_{machine}")
    return [*platforms, f"linux_{machine}"]


def _join(words: Iterable[str]) -> str:
    return ", ".join(sorted(set(words)))
