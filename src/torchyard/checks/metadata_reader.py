"""Where a package speaks of itself: the folder, the texts and the fields that rules look at."""

import re
from collections.abc import Iterable
from functools import lru_cache

from torchyard.errors import BuildError
from torchyard.package.conda.index import INDEX, CondaIndex, parse_index
from torchyard.package.contents import Contents, FaultKind, Kind
from torchyard.package.wheel.write import Field, parse_metadata

_DATA = re.compile(r"[^/]+\.data/(\w+)/(.+)")
_SITE = re.compile(r"lib/python\d[^/]*/site-packages/|Lib/site-packages/|site-packages/")

PREFIX = "../../.."
"""From site-packages to where Python is installed: `lib/python3.12/site-packages`."""


def dist_infos(contents: Contents) -> list[str]:
    """The folders `*.dist-info` at the root of a wheel; nearly always their texts were kept."""
    return _folders(contents.texts) or _folders(contents.files)


def _folders(names: Iterable[str]) -> list[str]:
    tops = {name.partition("/")[0] for name in names if ".dist-info/" in name}
    return sorted(top for top in tops if top.endswith(".dist-info"))


def dist_info(contents: Contents) -> str:
    """The one folder in which a wheel speaks of itself; empty if it is no wheel or has not one."""
    found = dist_infos(contents) if contents.kind is Kind.WHEEL else []
    return found[0] if len(found) == 1 else ""


def about_text(contents: Contents, name: str) -> bytes | None:
    """A file of a wheel's dist-info, if there is one."""
    folder = dist_info(contents)
    return contents.texts.get(f"{folder}/{name}") if folder else None


def is_torn(contents: Contents) -> bool:
    """Whether the archive can't be read as it should, so that files may be missing for that."""
    return any(fault.kind is FaultKind.STRUCTURE for fault in contents.faults)


def metadata_fields(contents: Contents) -> list[Field]:
    """The fields of a wheel's METADATA; none if it can't be read, which a rule tells."""
    return fields_of(about_text(contents, "METADATA") or b"")


@lru_cache(maxsize=4)
def fields_of(text: bytes) -> list[Field]:
    """The fields of METADATA or WHEEL; none if a line of it is no field."""
    try:
        return parse_metadata(text.decode())[0]
    except (UnicodeDecodeError, BuildError):
        return []


def values(fields: list[Field], name: str) -> list[str]:
    """All values of a field, whatever its name's case."""
    return [field.value for field in fields if field.name.lower() == name.lower()]


def conda_index(contents: Contents) -> CondaIndex | None:
    """What a conda package says of itself, if that can be read."""
    text = contents.texts.get(INDEX) if contents.kind is Kind.CONDA else None
    try:
        return None if text is None else parse_index(text)
    except BuildError:
        return None


def in_site_packages(contents: Contents, member: str) -> str | None:
    """The path of a member below site-packages once it is installed; None if it is not there."""
    match contents.kind:
        case Kind.WHEEL:
            top, _, rest = member.partition("/")
            if not top.endswith(".data"):
                return member
            library, _, path = rest.partition("/")
            return path if library in {"purelib", "platlib"} else None
        case Kind.CONDA:
            found = _SITE.match(member)
            return member[found.end() :] if found else None
        case Kind.ZIP:
            return None


def installed(contents: Contents) -> dict[str, str]:
    """Where each file lies once it is installed, from the root of that; by this, their names."""
    if contents.kind != Kind.WHEEL:
        return {name: name for name in contents.files}
    return {_moved(name) if ".data/" in name else name: name for name in contents.files}


def _moved(name: str) -> str:
    match = _DATA.fullmatch(name)
    if match is None or match[1] in ("purelib", "platlib"):
        return match[2] if match else name
    return f"{PREFIX}/bin/{match[2]}" if match[1] == "scripts" else f"{PREFIX}/{match[2]}"
