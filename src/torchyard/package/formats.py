"""All package formats. A new one is a class that satisfies `PackageFormat`, and a table of data."""

from pkgutil import resolve_name
from typing import cast

from torchyard.config.tables import load_tables
from torchyard.errors import UsageError
from torchyard.package.contents import Contents
from torchyard.package.format import PackageFormat

FORMATS: dict[str, PackageFormat] = {
    name: cast("type[PackageFormat]", resolve_name(row.implementation))()
    for name, row in load_tables().formats.items()
}
"""By the names that `data/formats.toml` has."""


def format_of(contents: Contents) -> PackageFormat:
    """Return the format of a package that was read."""
    return FORMATS[contents.format]


def suffixes() -> tuple[str, ...]:
    """Return the ends of the file names of all packages."""
    return tuple(suffix for form in FORMATS.values() for suffix in form.SUFFIXES)


def format_named(file_name: str) -> PackageFormat:
    """Return the format of a file, by the end of its name."""
    for form in FORMATS.values():
        if file_name.endswith(form.SUFFIXES):
            return form
    msg = f"`{file_name}` is no package: its name should end in {', '.join(suffixes())}"
    raise UsageError(msg, hint="rename the file to what it is, or name another one")


def site_path(contents: Contents, member: str) -> str | None:
    """Return the path of a member below site-packages once installed, or None."""
    return format_of(contents).site_path(member)


def installed_paths(contents: Contents) -> dict[str, str]:
    """Return the members of a package by their installed paths."""
    path = format_of(contents).installed_path
    return {path(name): name for name in contents.files}


def is_split(contents: Contents) -> bool:
    """Return whether the libraries of a build are split over several packages of this format."""
    return load_tables().formats[contents.format].split
