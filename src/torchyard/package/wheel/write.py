"""Write a wheel from its unpacked image.

A wheel's metadata depends only on its version and tags, so that all wheels of a version have the
same; see PEP 427 and the core metadata specification.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement
from packaging.tags import parse_tag
from packaging.version import Version

from torchyard.errors import BuildError, ConfigError
from torchyard.model.requirement import parse_requirement
from torchyard.package.sbom.component import SBOM_FILE
from torchyard.package.wheel.dist_info import find_dist_info, record
from torchyard.package.wheel.name import WheelTags, wheel_name, wheel_stem
from torchyard.package.zip.writer import Member, members_of, writing
from torchyard.version import __version__

_OURS = frozenset(("METADATA", "WHEEL", "RECORD", "RECORD.jws", "RECORD.p7s"))
"""Files of the image's dist-info to rewrite or remove, as they would be wrong."""

_FIELDS = (
    "Metadata-Version",
    "Name",
    "Version",
    "Summary",
    "Home-page",
    "Download-URL",
    "Author",
    "Author-email",
    "Maintainer",
    "Maintainer-email",
    "License",
    "License-Expression",
    "License-File",
    "Keywords",
    "Classifier",
    "Project-URL",
    "Requires-Python",
    "Requires-External",
    "Requires-Dist",
    "Provides-Extra",
    "Provides-Dist",
    "Obsoletes-Dist",
    "Description-Content-Type",
)
"""The order of the fields for every backend; others come last."""

_REPLACED = frozenset(
    ("Name", "Version", "Requires-Dist", "Platform", "Supported-Platform", "Dynamic")
)
"""Fields to rewrite, or to remove because they depend on the machine or the backend."""


_FIELD_NAME = re.compile(r"[!-9;-~]+")
_LONGEST_FIELDS = 256 << 10


class Field(NamedTuple):
    """A field of METADATA; a long value keeps its line breaks."""

    name: str
    value: str


def write_wheel(  # noqa: PLR0913 - what a wheel says of itself
    image: Path,
    out: Path,
    *,
    name: str,
    version: str,
    tags: WheelTags,
    platform_tag: str,
    requires: Sequence[str],
    spec: Path,
    sbom: bytes = b"",
    number: int = 0,
) -> Path:
    """Write a wheel into the directory `out`; do not change the image.

    `requires` are requirements besides those in the image's METADATA; `number` is the wheel's build
    number. `spec` is the file to build the package again from; it goes into the wheel under its own
    name, and `sbom`, which lists what is in it, into the folder for it (PEP 770), if given.
    """
    dist_info = find_dist_info(image)
    stem = wheel_stem(name, version)
    home = f"{stem}.dist-info/"
    renamed = {
        f"{dist_info.name}/": home,
        f"{dist_info.name.removesuffix('.dist-info')}.data/": f"{stem}.data/",
    }
    made = [
        Member(f"{home}METADATA", metadata(_read(dist_info / "METADATA"), name, version, requires)),
        Member(f"{home}WHEEL", _wheel_text(tags, platform_tag, number)),
        Member(home + spec.name, spec.read_bytes()),
        *([Member(f"{home}sboms/{SBOM_FILE}", sbom)] if sbom else []),
    ]
    ours = {home + file for file in _OURS} | {member.name for member in made}
    kept = [_renamed(member, renamed) for member in members_of(image)]
    content = [member for member in kept if not member.name.startswith(home)]
    about = [m for m in kept if m.name.startswith(home) and m.name not in ours]
    path = out / wheel_name(name, version, tags, platform_tag, number)
    with writing(path) as archive:
        written = archive.add([*content, *sorted(about + made, key=lambda member: member.name)])
        archive.add([Member(f"{home}RECORD", record(written, f"{home}RECORD").encode())])
    return path


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError) as error:
        msg = f"`{path}` can't be read: {error}"
        raise BuildError(msg, hint="the project's backend must write it") from error


def _renamed(member: Member, folders: dict[str, str]) -> Member:
    for old, new in folders.items():
        if member.name.startswith(old):
            return member._replace(name=new + member.name.removeprefix(old))
    return member


def metadata(text: str, name: str, version: str, requires: Iterable[str]) -> bytes:
    """Rewrite METADATA: name and version, more requirements, and one order for all backends."""
    fields, description = parse_metadata(text)
    kept = {field for field in fields if field.name not in _REPLACED}
    listed = [f.value for f in fields if f.name == "Requires-Dist"]
    kept |= {Field("Requires-Dist", _requirement(r)) for r in (*listed, *requires)}
    kept |= {Field("Name", name), Field("Version", str(Version(version)))}
    lines = (f"{field.name}: {field.value}\n" for field in sorted(kept, key=_rank))
    return ("".join(lines) + (f"\n{description}" if description else "")).encode()


def parse_metadata(text: str) -> tuple[list[Field], str]:
    """Return the fields of METADATA, and the description below them."""
    head, _, description = text.replace("\r\n", "\n").partition("\n\n")
    if len(head) > _LONGEST_FIELDS:
        msg = f"METADATA has fields of {len(head)} characters"
        raise BuildError(msg, hint=f"the limit is {_LONGEST_FIELDS}")
    if "\r" in head:
        msg = "METADATA has a carriage return, after which installers start a new field"
        raise BuildError(msg, hint="the project's backend must end lines by a line feed")
    found: list[tuple[str, list[str]]] = []
    for line in head.removesuffix("\n").split("\n") if head else ():
        if line.startswith((" ", "\t")) and found:  # continues the field above
            found[-1][1].append(line)
            continue
        name, colon, value = line.partition(":")
        if not colon or not _FIELD_NAME.fullmatch(name):
            msg = f"METADATA has a malformed line: `{line}`"
            raise BuildError(msg, hint="the project's backend must write `Name: value`")
        found.append((name, [value.strip()]))
    return [Field(name, "\n".join(lines)) for name, lines in found], description


def _rank(field: Field) -> tuple[int, str, str]:
    rank = _FIELDS.index(field.name) if field.name in _FIELDS else len(_FIELDS)
    return rank, field.name, field.value


def _requirement(text: str) -> str:
    hint = "write it as in `numpy>=2` (PEP 508)"
    try:
        spelt = str(parse_requirement(text))
    except InvalidRequirement as error:
        msg = f"`{text}` is not a requirement: {error}"
        raise ConfigError(msg, hint=hint) from error
    if not spelt.isprintable():  # a marker's quotes may have a line break
        msg = f"the requirement `{text}` has characters that would end its line"
        raise ConfigError(msg, hint=hint)
    return spelt


def _wheel_text(tags: WheelTags, platform_tag: str, number: int) -> bytes:
    lines = ["Wheel-Version: 1.0", f"Generator: torchyard {__version__}", "Root-Is-Purelib: false"]
    spelt = parse_tag(f"{tags.python}-{tags.abi}-{platform_tag}")
    lines += [f"Tag: {tag}" for tag in sorted(map(str, spelt))]
    lines += [f"Build: {number}"] if number else []
    return "".join(f"{line}\n" for line in lines).encode()
