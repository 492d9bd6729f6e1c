"""Load the shipped tables and check that they are consistent.

`dump(name, load...)` reproduces the file byte for byte, so that programs can edit tables.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TypeVar

import msgspec

from torchyard.compute.platform import ComputePlatform
from torchyard.compute.registry import compute_platforms, known_computes
from torchyard.config.recipes import known_recipes
from torchyard.errors import DataError
from torchyard.host.files import read_data
from torchyard.model.config import own_release
from torchyard.model.identifier import WORD, fits_identifier
from torchyard.model.tables import (
    BuildPreset,
    Format,
    PackageKind,
    Platform,
    Python,
    Release,
    SourceTree,
    Tables,
    python_of,
)
from torchyard.model.toolchain import is_pinned
from torchyard.model.values import Value

Row = TypeVar("Row", bound=Value)

Problem = tuple[tuple[str, ...], str]
"""A problem and its location: the table, the row, and the keys in it."""

FILES: Mapping[str, type[Value]] = {
    "platforms": Platform,
    "pythons": Python,
    "formats": Format,
    "packages": PackageKind,
    "releases": Release,
    "trees": SourceTree,
    "builds": BuildPreset,
}


def load_tables() -> Tables:
    """Return all tables, each checked against the others."""
    return _load_tables(compute_platforms())


@cache
def _load_tables(computes: tuple[ComputePlatform, ...]) -> Tables:
    """Return the tables, cached for each set of compute platforms."""
    tables = Tables(
        platforms=_load("platforms", Platform),
        pythons=_load("pythons", Python),
        formats=_load("formats", Format),
        packages=_load("packages", PackageKind),
        compute=known_computes(computes),
        releases=_load("releases", Release),
        trees=_load("trees", SourceTree),
        builds=_load("builds", BuildPreset),
    )
    check_tables(tables)
    return tables


def _load(name: str, row: type[Row]) -> dict[str, Row]:
    return parse_data(name, read_data(f"{name}.toml"), row)


def parse_data(name: str, text: str, row: type[Row]) -> dict[str, Row]:
    """Return the rows of one table."""
    try:
        return msgspec.convert(tomllib.loads(text), dict[str, row])  # type: ignore[valid-type]
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        msg = f"the table data/{name}.toml is malformed: {error}"
        raise DataError(msg) from error


def check_tables(tables: Tables) -> None:
    """Fail if a table refers to an undefined name."""
    for _, problem in table_problems(tables):
        raise DataError(problem)


def table_problems(tables: Tables) -> Iterator[Problem]:
    """Yield the problems of all rows, checked against the other tables."""
    yield from _bad_names(tables)
    for name, compute in tables.compute.items():
        for platform in compute.platforms:
            if platform not in tables.platforms:
                yield ("compute", name), f"{name} names the unknown platform `{platform}`"
    yield from _bad_releases(tables)
    yield from _unknown_names(tables)


def _unknown_names(tables: Tables) -> Iterator[Problem]:
    """Yield references to undefined names."""
    for name, release in tables.releases.items():
        for column, computes in (("libraries", release.libraries), ("triton", release.triton)):
            for compute in computes:
                if compute not in tables.compute:
                    what = f"torch {name} names the unknown compute platform `{compute}`"
                    yield ("releases", name, column, compute), what
    yield from _unknown_columns(tables)
    yield from _unknown_packages(tables)
    for name, kind in tables.packages.items():
        if kind.format not in tables.formats:
            what = f"the package kind {name} names the unknown format `{kind.format}`"
            yield ("packages", name), what


def _unknown_packages(tables: Tables) -> Iterator[Problem]:
    for recipe in known_recipes().values():
        for package in recipe.packages:
            if package not in tables.packages:
                what = f"the recipe {recipe.name} names the unknown package kind `{package}`"
                yield ("recipes", recipe.name), what


def _unknown_columns(tables: Tables) -> Iterator[Problem]:
    for name, form in tables.formats.items():
        for column in form.platform.values():
            if column not in Platform.__struct_fields__:
                what = f"the format {name} names the unknown column `{column}` of platforms.toml"
                yield ("formats", name), what


def _bad_names(tables: Tables) -> Iterator[Problem]:
    """Yield names that can't be part of an identifier, or that contradict their row."""
    for table, rows in (("platforms", tables.platforms), ("packages", tables.packages)):
        for name in rows:
            if not fits_identifier(name):
                yield (table, name), f"`{name}` can't be part of an identifier"
    for name, python in tables.pythons.items():
        if python_of(name) != python:
            what = f"`{name}` is not the tag of this Python; free-threaded 3.13 is cp313t"
            yield ("pythons", name), what
    for compute in tables.compute:
        if not WORD.fullmatch(compute):
            what = f"the compute platform `{compute}` can't have a `-` in an identifier"
            yield ("compute", compute), what


def _bad_releases(tables: Tables) -> Iterator[Problem]:
    """Yield rows without a torch release, or with unpinned requirements."""
    for table, releases in (("releases", tables.releases), ("builds", tables.builds)):
        for name in releases:
            if own_release(name) != name:
                yield (table, name), f"`{name}` is not a torch release, such as 2.14"
    for name, build in tables.builds.items():
        for requirement in build.requires:
            if not is_pinned(requirement):
                what = f"the builds from {name} on require `{requirement}`, which is not pinned"
                yield ("builds", name, "requires"), what


def dump(rows: Mapping[str, object], header: str, *within: str) -> str:
    """Return the text of a table: its header, then a section for each row.

    `within` names the tables around the sections, if any.
    """
    plain = msgspec.to_builtins(rows)
    return header + "\n".join(_section((*within, name), row) for name, row in plain.items())


def header_of(text: str) -> str:
    """Return the comment at the top of a table, the `header` of :func:`dump`."""
    head, _, _ = text.partition("\n[")
    return head + "\n"


def _section(path: tuple[str, ...], row: Mapping[str, object], *, is_row: bool = True) -> str:
    title = ".".join(map(_key, path))
    entries = ""
    below = []
    for key, value in row.items():
        if isinstance(value, dict) and is_row:
            below.append(_section((*path, key), value, is_row=False))
        else:
            entries += f"{_key(key)} = {toml_value(value)}\n"
    return "\n".join(([f"[{title}]\n{entries}"] if entries else []) + below)


def toml_value(value: object) -> str:
    """Return a value as TOML, on one line except for lists of tables."""
    match value:
        case dict():
            pairs = (f"{_key(k)} = {toml_value(v)}" for k, v in value.items())
            return f"{{ {', '.join(pairs)} }}" if value else "{}"
        case [dict(), *_]:
            return "\n".join(["[", *(f"    {toml_value(item)}," for item in value), "]"])
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case _:
            return msgspec.json.encode(value).decode()


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'"{key}"'
