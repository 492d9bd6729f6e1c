"""Wheels, as a package format."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from packaging.utils import canonicalize_name, parse_wheel_filename

from torchyard.compute.registry import platform_for
from torchyard.config.tables import load_tables
from torchyard.errors import CheckError
from torchyard.model.job_spec import Task
from torchyard.model.recipe import Stage
from torchyard.package.contents import Contents
from torchyard.package.format import Label, PackageBuild
from torchyard.package.limits import Limits
from torchyard.package.members import FoundMembers
from torchyard.package.versions import local_version, package_folder
from torchyard.package.wheel import metadata
from torchyard.package.wheel.compatible_tags import ANY, tag_platforms
from torchyard.package.wheel.name import SUFFIX, WheelName, split_tags
from torchyard.package.zip.inflate import Progress
from torchyard.package.zip.members import read_zip

PREFIX = "../../.."
"""From site-packages to Python's prefix: `lib/python3.12/site-packages`."""

_DATA = re.compile(r"[^/]+\.data/(\w+)/(.+)")
_DIST_INFO = re.compile(r"[^/]+\.dist-info/")
_LIBRARIES = ("purelib", "platlib")


class WheelFormat:
    """Wheels."""

    NAME = metadata.NAME
    SUFFIXES: tuple[str, ...] = (SUFFIX,)
    ROOT = "site-packages"
    INSTALLED = "installed"
    IN_ENVIRONMENT = True
    IN_ONE_FOLDER = True

    def read(self, file: BinaryIO, _name: str, limits: Limits, progress: Progress) -> FoundMembers:
        """Read all members. Links are faults in wheels."""
        return read_zip(file, limits, progress, links=False)

    def label(self, contents: Contents) -> Label:
        """Return the label from the file name, if it is a wheel's."""
        try:
            name, version, _, _ = parse_wheel_filename(contents.file_name)
        except ValueError:
            return Label()
        python, abi, platforms = split_tags(contents.file_name)
        return Label(
            name=name,
            version=str(version),
            python=python,
            abi=abi,
            platforms=tuple(platforms.split(".")),
        )

    def platforms(self, contents: Contents) -> set[str]:
        """Return the platforms of its tags."""
        found = {p for tag in self.label(contents).platforms for p in tag_platforms(tag)}
        return {*load_tables().platforms} if ANY in found else found

    def install_label(self, contents: Contents) -> Label:
        parse_wheel_filename(contents.file_name)
        found = self.label(contents)
        return found._replace(name=canonicalize_name(found.name))

    def distribution(self, file_name: str) -> str:
        return canonicalize_name(file_name.partition("-")[0])

    def requirements(self, contents: Contents) -> Iterator[str]:
        yield from metadata.values(metadata.metadata_fields(contents), "Requires-Dist")

    def site_path(self, member: str) -> str | None:
        top, _, rest = member.partition("/")
        if not top.endswith(".data"):
            return member
        library, _, path = rest.partition("/")
        return path if library in _LIBRARIES else None

    def installed_path(self, member: str) -> str:
        match = _DATA.fullmatch(member) if ".data/" in member else None
        if match is None:
            return member
        if match[1] in _LIBRARIES:
            return match[2]
        return f"{PREFIX}/bin/{match[2]}" if match[1] == "scripts" else f"{PREFIX}/{match[2]}"

    def top_folder(self, _contents: Contents) -> str:
        return ""

    def python_package(self, _contents: Contents, project: str) -> str:
        return package_folder(project)

    def new_name(
        self, file_name: str, version: Callable[[str], str], tags: Iterable[tuple[str, str, str]]
    ) -> str:
        name = WheelName.parse(file_name)
        for python, abi, platform in tags:
            name = name.retagged(python, abi, platform)
        return str(name._replace(version=version(name.version)))

    def metadata_folder(self, file_name: str, members: Iterable[str]) -> str:
        """Return the folder `.dist-info`; there must be exactly one."""
        found = {name.partition("/")[0] for name in members if _DIST_INFO.match(name)}
        if len(found) != 1:
            names = ", ".join(f"`{name}`" for name in sorted(found)) or "none"
            msg = f"`{file_name}` should have one folder *.dist-info, but has {names}"
            raise CheckError(msg, hint="no installer would accept this wheel: build it again")
        return f"{found.pop()}/"

    def pack(self, build: PackageBuild) -> list[Path]:
        from torchyard.package.wheel.assemble import assemble_wheel  # noqa: PLC0415 - only jobs write
        from torchyard.package.wheel.extension import assemble_extension  # noqa: PLC0415 - as above

        task, facts = build.spec.task, build.spec.task.facts
        if build.core.stage is Stage.BINDINGS:
            return assemble_extension(build, build.inputs / Stage.BINDINGS).files
        core = build.inputs / Stage.CORE
        made = assemble_wheel(
            install=core / "install",
            vendor=core / "vendor",
            image=build.inputs / Stage.BINDINGS / "image",
            scratch=build.scratch,
            out=build.out,
            name=facts["name"],
            version=local_version(facts["version"], facts["compute"]),
            python=facts["python"],
            platform_tag=task.text("platform_tag"),
            compute=facts["compute"],
            toolkit=build.core.text(platform_for(facts["compute"]).name),
            pins=_pins(task, build.core),
            spec=build.carried,
            bill=build.bill,
            number=build.number,
        )
        return made.files

    def pack_companions(self, _build: PackageBuild) -> list[Path]:
        return []


def _pins(task: Task, core: Task) -> dict[str, str]:
    """Return versions: of libraries in the plan, and of wheels the core was compiled with."""
    planned = {name: text for name, text in task.settings.items() if isinstance(text, str)}
    words = (pin.split()[0].partition("==") for pin in core.words("requires"))
    return planned | {name: version for name, _, version in words if version}
