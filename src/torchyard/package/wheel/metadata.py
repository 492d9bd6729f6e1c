"""The metadata of a read wheel: its `.dist-info`, and the fields of METADATA and WHEEL."""

from collections.abc import Iterable
from functools import lru_cache

from torchyard.errors import BuildError
from torchyard.package.contents import Contents
from torchyard.package.wheel.write import Field, parse_metadata

NAME = "wheel"


def is_wheel(contents: Contents) -> bool:
    return contents.format == NAME


def dist_infos(contents: Contents) -> list[str]:
    """Return the folders `*.dist-info` at the root of a wheel."""
    return _folders(contents.texts) or _folders(contents.files)


def _folders(names: Iterable[str]) -> list[str]:
    tops = {name.partition("/")[0] for name in names if ".dist-info/" in name}
    return sorted(top for top in tops if top.endswith(".dist-info"))


def dist_info(contents: Contents) -> str:
    """Return the folder `.dist-info` of a wheel; "" unless there is exactly one."""
    found = dist_infos(contents) if is_wheel(contents) else []
    return found[0] if len(found) == 1 else ""


def about_text(contents: Contents, name: str) -> bytes | None:
    """Return a file of a wheel's dist-info, or None."""
    folder = dist_info(contents)
    return contents.texts.get(f"{folder}/{name}") if folder else None


def metadata_fields(contents: Contents) -> list[Field]:
    """Return the fields of a wheel's METADATA; empty if unreadable, which a rule reports."""
    return fields_of(about_text(contents, "METADATA") or b"")


@lru_cache(maxsize=4)
def fields_of(text: bytes) -> list[Field]:
    """Return the fields of METADATA or WHEEL; empty if a line is malformed."""
    try:
        return parse_metadata(text.decode())[0]
    except (UnicodeDecodeError, BuildError):
        return []


def values(fields: list[Field], name: str) -> list[str]:
    """Return all values of a field; its name is case-insensitive."""
    return [field.value for field in fields if field.name.lower() == name.lower()]
