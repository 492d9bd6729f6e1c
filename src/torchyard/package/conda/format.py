"""conda packages, as a package format."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

import msgspec

from torchyard.errors import UsageError
from torchyard.model.recipe import Stage
from torchyard.package.conda import index, name
from torchyard.package.conda.metadata import CondaBuild, CondaKind
from torchyard.package.conda.table import channel_sonames, load_conda_table
from torchyard.package.conda.write import Sources, assemble_conda
from torchyard.package.contents import Contents
from torchyard.package.format import Label, PackageBuild
from torchyard.package.limits import Limits
from torchyard.package.members import FoundMembers
from torchyard.package.versions import package_folder
from torchyard.package.zip.inflate import Progress
from torchyard.toolchain.summary import is_wanted

_HASH = 7
"""Digits of a fingerprint in a conda build string."""


_BESIDE = {
    CondaKind.PACKAGE: (CondaKind.LIBRARIES, CondaKind.LINALG),
    CondaKind.TESTS: (CondaKind.PACKAGE, CondaKind.LIBRARIES, CondaKind.LINALG),
    CondaKind.LIBRARIES: (),
    CondaKind.LINALG: (CondaKind.LIBRARIES,),
    CondaKind.META: (),  # it fits the package of any Python, and none is at hand
}
"""The kinds that must be installed with each kind of conda package, from the same build."""


def pack_companions(build: PackageBuild) -> list[Path]:
    """Make the other packages of a build that must be installed with a package."""
    whole = not build.core.text("linalg")  # then the plugin is a part of the libraries
    made: list[Path] = []
    for kind in _BESIDE[CondaKind(build.spec.task.facts["kind"])]:
        if kind is not CondaKind.LINALG or not whole:
            made += pack_kind(build, kind)
    return made


def pack_kind(made: PackageBuild, kind: str) -> list[Path]:
    """Make a conda package; the plugin has one without MAGMA, and one with it unless it is off."""
    spec, core = made.spec, made.core
    inputs = made.inputs
    task = spec.task
    facts = task.facts
    bindings = next((t for t in spec.tasks if t.stage is Stage.BINDINGS), None)
    build = CondaBuild(
        name=facts["name"],
        version=facts["version"],
        compute=facts["compute"],
        blas=facts["variant"],
        subdir=task.text("subdir"),
        build_hash=(bindings or core).fingerprint[:_HASH],
        core_hash=core.fingerprint[:_HASH],
        number=made.number,
        python=facts["python"] if bindings else None,
        linalg_apart=bool(core.text("linalg")),
        channel_libraries=bool(channel_sonames(task.text("libraries"))),
        pins={pin: core.text(pin) for pin in load_conda_table().pins if core.text(pin)},
    )
    sources = Sources(
        core=inputs / Stage.CORE,
        image=inputs / Stage.BINDINGS / "image" if bindings else None,
        tests=_tests(inputs / Stage.CORE / "tree"),
    )
    builds = [build]
    if kind == CondaKind.LINALG:
        without = msgspec.structs.replace(build, magma=False)
        has_magma = is_wanted("USE_MAGMA", core.table("env"), core.table("cmake"))
        builds = [build, without] if has_magma else [without]
    return [
        assemble_conda(
            CondaKind(kind), one, sources, scratch=made.scratch, out=made.out, spec=made.carried
        )
        for one in builds
    ]


def _tests(tree: Path) -> Path | None:
    """Return the test suite in a project's source, if it is in a usual place."""
    return next((tree / name for name in ("test", "tests") if (tree / name).is_dir()), None)


_NAMED = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)-(?P<build>[^-]+)\.(?:conda|tar\.bz2)")
_PYTHON_ABI = re.compile(r"python_abi .* \*_(?P<abi>cp\d+t?)")
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
        own = (folder for folder in folders if folder.endswith(f"{_SITE}{package_folder(project)}"))
        return next(own, next(iter(folders), ""))

    def new_name(
        self, file_name: str, _version: Callable[[str], str], _tags: Iterable[tuple[str, str, str]]
    ) -> str:
        _refuse_repair(file_name)

    def metadata_folder(self, file_name: str, _members: Iterable[str]) -> str:
        _refuse_repair(file_name)

    def pack(self, build: PackageBuild) -> list[Path]:
        from torchyard.package.conda.format import pack_kind  # noqa: PLC0415 - only jobs write

        return pack_kind(build, build.spec.task.facts["kind"])

    def pack_companions(self, build: PackageBuild) -> list[Path]:
        from torchyard.package.conda.format import pack_companions  # noqa: PLC0415 - only jobs write

        return pack_companions(build)
