"""All package formats: add one as a `PackageFormat` class and a table in `data/formats.toml`."""

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
"""By their names in `data/formats.toml`."""


def format_of(contents: Contents) -> PackageFormat:
    """Return the format of a package that was read."""
    return FORMATS[contents.format]


def suffixes() -> tuple[str, ...]:
    """Return the suffixes of all packages' file names."""
    return tuple(suffix for form in FORMATS.values() for suffix in form.SUFFIXES)


def format_named(file_name: str) -> PackageFormat:
    """Return the format of a file, by its suffix."""
    for form in FORMATS.values():
        if file_name.endswith(form.SUFFIXES):
            return form
    msg = f"`{file_name}` is not a package: its name should end in {', '.join(suffixes())}"
    raise UsageError(msg, hint="rename the file, or name another one")


def site_path(contents: Contents, member: str) -> str | None:
    """Return the path of a member below site-packages once installed, or None."""
    return format_of(contents).site_path(member)


def installed_paths(contents: Contents) -> dict[str, str]:
    """Return the members of a package by their installed paths."""
    path = format_of(contents).installed_path
    return {path(name): name for name in contents.files}


def is_split(contents: Contents) -> bool:
    """Return whether this format splits a build's libraries into several packages."""
    return load_tables().formats[contents.format].split
