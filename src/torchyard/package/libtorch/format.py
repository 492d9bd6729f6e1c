"""libtorch zips, as a package format."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

from packaging.utils import canonicalize_name

from torchyard.config.tables import load_tables
from torchyard.model.recipe import Stage
from torchyard.package.contents import Contents
from torchyard.package.format import Label, PackageBuild
from torchyard.package.libtorch import write
from torchyard.package.limits import Limits
from torchyard.package.members import FoundMembers
from torchyard.package.versions import is_version, local_version, unquoted
from torchyard.package.zip.inflate import Progress
from torchyard.package.zip.members import read_zip

_SYSTEMS = {"elf": "linux", "mach-o": "macos", "pe": "windows"}
_NAMED = re.compile(
    r"(?P<stem>(?P<name>lib[^-]+)-(?:.+?-)??)(?P<version>\d[^-]*)"
    r"(?P<rest>(?:-(?P<build>\d+))?(?:-debug)?\.zip)"
)


def zip_build(file_name: str) -> int:
    """Return the build number in the name of a zip; 0 if it has none."""
    named = _NAMED.fullmatch(unquote(file_name))
    return int(named["build"] or 0) if named else 0


def zip_without_build(file_name: str) -> str:
    """Return the name of a zip without its build number."""
    number = zip_build(file_name)
    return re.sub(rf"-{number}(?=(-debug)?\.zip$)", "", file_name) if number else file_name


def is_libtorch(contents: Contents) -> bool:
    return contents.format == write.NAME


class LibtorchFormat:
    """libtorch zips."""

    NAME = write.NAME
    SUFFIXES: tuple[str, ...] = (".zip",)
    ROOT = "what is unpacked"
    INSTALLED = "unpacked"
    IN_ENVIRONMENT = False
    IN_ONE_FOLDER = True

    def read(self, file: BinaryIO, _name: str, limits: Limits, progress: Progress) -> FoundMembers:
        return read_zip(file, limits, progress, links=True)

    def label(self, contents: Contents) -> Label:
        """Return the label from the file name, libNAME-…-VERSION.zip."""
        named = _NAMED.fullmatch(unquote(contents.file_name))
        return Label() if named is None else Label(name=named["name"], version=named["version"])

    def platforms(self, contents: Contents) -> set[str]:
        """Return the platforms from the file name, else from the libraries."""
        rows = load_tables().platforms
        named = {name for name in rows if name in contents.file_name} or {*rows}
        binaries = (file.binary for file in contents.files.values())
        systems = {_SYSTEMS[binary.format] for binary in binaries if binary}
        return {name for name in named if systems <= {name.partition("-")[0]}} or systems

    def install_label(self, contents: Contents) -> Label:
        found = self.label(contents)
        return found._replace(name=found.name or contents.file_name.removesuffix(self.SUFFIXES[0]))

    def distribution(self, file_name: str) -> str:
        return canonicalize_name(file_name.partition("-")[0])

    def requirements(self, _contents: Contents) -> Iterator[str]:
        """Yield nothing: a zip contains its dependencies."""
        yield from ()

    def site_path(self, _member: str) -> str | None:
        return None

    def installed_path(self, member: str) -> str:
        return member

    def top_folder(self, contents: Contents) -> str:
        return next(iter(contents.files)).partition("/")[0] + "/"

    def python_package(self, _contents: Contents, _project: str) -> str:
        return ""

    def new_name(
        self, file_name: str, version: Callable[[str], str], _tags: Iterable[tuple[str, str, str]]
    ) -> str:
        named = _NAMED.fullmatch(unquoted(file_name))
        if named is None or not is_version(named["version"]):
            return file_name
        new = version(named["version"])
        return f"{named['stem']}{new}{named['rest']}" if new != named["version"] else file_name

    def metadata_folder(self, _file_name: str, _members: Iterable[str]) -> str:
        return ""

    def pack(self, build: PackageBuild) -> list[Path]:
        from torchyard.package.libtorch.assemble import (  # noqa: PLC0415 - only jobs write
            assemble_libtorch,
        )

        facts = build.spec.task.facts
        core = build.inputs / Stage.CORE
        label = write.ZipLabel(
            name=facts["name"],
            version=local_version(facts["version"], facts["compute"]),
            platform=facts["platform"],
            kind=facts["kind"],
            number=build.number,
        )
        made = assemble_libtorch(
            label,
            install=core / "install",
            vendor=core / "vendor" if label.has_deps else None,
            scratch=build.scratch,
            out=build.out,
            compute=facts["compute"],
            git_hash=build.commit,
            spec=build.carried,
            bill=build.bill,
        )
        return made.files

    def pack_companions(self, _build: PackageBuild) -> list[Path]:
        return []
