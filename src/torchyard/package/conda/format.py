"""conda packages, as a package format."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

from torchyard.config.tables import load_tables
from torchyard.errors import UsageError
from torchyard.package.conda import index, name
from torchyard.package.contents import Contents
from torchyard.package.format import Label, PackageBuild
from torchyard.package.limits import Limits
from torchyard.package.members import FoundMembers
from torchyard.package.versions import package_folder
from torchyard.package.zip.inflate import Progress

_NAMED = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)-(?P<build>[^-]+)\.(?:conda|tar\.bz2)")
_PYTHON_ABI = re.compile(r"python_abi .* \*_(?P<abi>cp\d+t?)")
_NOARCH = "noarch"
_SITE = "site-packages/"
_SITES = re.compile(r"lib/python\d[^/]*/site-packages/|Lib/site-packages/|site-packages/")


def _refuse_repair(file_name: str) -> NoReturn:
    msg = f"`{file_name}` is a conda package, whose files are compressed together: none can be kept"
    hint = "unpack it with `cph extract`, change the files, and pack it with `cph create`"
    raise UsageError(msg, hint=hint)


class CondaFormat:
    """conda packages."""

    NAME = index.NAME
    SUFFIXES = name.SUFFIXES
    ROOT = "the prefix"
    INSTALLED = "installed"
    IN_ENVIRONMENT = False
    IN_ONE_FOLDER = False

    def read(
        self, file: BinaryIO, file_name: str, limits: Limits, progress: Progress
    ) -> FoundMembers:
        from torchyard.package.conda.read import (  # noqa: PLC0415 - with two more libraries
            read_conda,
        )

        return read_conda(file, file_name, limits, progress)

    def label(self, contents: Contents) -> Label:
        """Return the label by the file name, NAME-VERSION-BUILD, and the index."""
        named = _NAMED.fullmatch(contents.file_name)
        about = index.conda_index(contents)
        abis = (_PYTHON_ABI.fullmatch(need) for need in (about.depends if about else ()))
        abi = next((match["abi"] for match in abis if match), "")
        return Label(
            name=named["name"] if named else "",
            version=named["version"] if named else "",
            build=named["build"] if named else "",
            python=abi.removesuffix("t"),
            abi=abi,
            platforms=(about.subdir,) if about and about.subdir else (),
        )

    def platforms(self, contents: Contents) -> set[str]:
        """Return the platforms of its subdir."""
        subdirs = self.label(contents).platforms
        rows = load_tables().platforms
        if _NOARCH in subdirs:
            return {*rows}
        return {name for name, row in rows.items() if row.conda_subdir in subdirs} or {*subdirs}

    def install_label(self, contents: Contents) -> Label:
        about = index.conda_index(contents)
        if about is None:
            msg = f"it has no {index.INDEX} that can be read"
            raise ValueError(msg)
        return Label(
            name=about.name or name.conda_stem(contents.file_name),
            version=about.version,
            build=about.build,
            platforms=(about.subdir,),
        )

    def distribution(self, file_name: str) -> str:
        return name.conda_name(file_name)

    def requirements(self, contents: Contents) -> Iterator[str]:
        """Yield the names in `depends`, without virtual packages: __glibc, __cuda."""
        about = index.conda_index(contents)
        for depend in about.depends if about else ():
            first, *_ = depend.split() or [""]
            if not first.startswith("__"):
                yield name.requirement_name(first)

    def site_path(self, member: str) -> str | None:
        found = _SITES.match(member)
        return member[found.end() :] if found else None

    def installed_path(self, member: str) -> str:
        return member

    def top_folder(self, _contents: Contents) -> str:
        return ""

    def python_package(self, contents: Contents, project: str) -> str:
        """Return the folder of the Python package whose libraries a conda package has.

        That is the project's own, if it has any: torch comes with functorch beside it.
        """
        folders = [
            f"{site}{_SITE}{rest.partition('/')[0]}"
            for site, found, rest in (member.partition(_SITE) for member in contents.files)
            if found and ".so" in rest
        ]
        suffix = f"{_SITE}{package_folder(project)}"
        return next((f for f in folders if f.endswith(suffix)), next(iter(folders), ""))

    def new_name(
        self, file_name: str, _version: Callable[[str], str], _tags: Iterable[tuple[str, str, str]]
    ) -> str:
        _refuse_repair(file_name)

    def metadata_folder(self, file_name: str, _members: Iterable[str]) -> str:
        _refuse_repair(file_name)

    def pack(self, build: PackageBuild) -> list[Path]:
        from torchyard.package.conda.pack import pack_kind  # noqa: PLC0415 - only jobs write

        return pack_kind(build, build.spec.task.facts["kind"])

    def pack_companions(self, build: PackageBuild) -> list[Path]:
        from torchyard.package.conda.pack import pack_companions  # noqa: PLC0415 - only jobs write

        return pack_companions(build)
