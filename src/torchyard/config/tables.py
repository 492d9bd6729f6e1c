"""Loads the shipped tables and checks that they are consistent.

`dump(name, load...)` reproduces the file byte for byte, so that programs can edit tables.
"""

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
from torchyard.model.identifier import ANY_PYTHON, WORD, fits_identifier
from torchyard.model.tables import (
    Format,
    PackageKind,
    Platform,
    Python,
    Release,
    SourceTree,
    Tables,
)
from torchyard.model.values import Value

Row = TypeVar("Row", bound=Value)

FILES: Mapping[str, type[Value]] = {
    "platforms": Platform,
    "pythons": Python,
    "formats": Format,
    "packages": PackageKind,
    "releases": Release,
    "trees": SourceTree,
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
    """Fail if a table refers to a name that no other table defines."""
    for problem in _problems(tables):
        raise DataError(problem)


def _problems(tables: Tables) -> Iterator[str]:
    yield from _bad_names(tables)
    for name, compute in tables.compute.items():
        for platform in compute.platforms:
            if platform not in tables.platforms:
                yield f"{name} names the unknown platform `{platform}`"
    yield from _unknown_names(tables)


def _unknown_names(tables: Tables) -> Iterator[str]:
    """Yield references to names that no table defines."""
    for name, release in tables.releases.items():
        for compute in (*release.libraries, *release.triton):
            if compute not in tables.compute:
                yield f"torch {name} names the unknown compute platform `{compute}`"
    yield from _unknown_columns(tables)
    yield from _unknown_packages(tables)
    for name, kind in tables.packages.items():
        if kind.format not in tables.formats:
            yield f"the package kind {name} names the unknown format `{kind.format}`"


def _unknown_packages(tables: Tables) -> Iterator[str]:
    for recipe in known_recipes().values():
        for package in recipe.packages:
            if package not in tables.packages:
                yield f"the recipe {recipe.name} names the unknown package kind `{package}`"


def _unknown_columns(tables: Tables) -> Iterator[str]:
    for name, form in tables.formats.items():
        for column in form.platform.values():
            if column not in Platform.__struct_fields__:
                yield f"the format {name} names the unknown column `{column}` of platforms.toml"


def _bad_names(tables: Tables) -> Iterator[str]:
    """Yield names that cannot be part of an identifier."""
    for name in (*tables.platforms, *tables.pythons, *tables.packages):
        if not fits_identifier(name):
            yield f"`{name}` can't be part of an identifier"
    for compute in tables.compute:
        if not WORD.fullmatch(compute):
            yield f"the compute platform `{compute}` can't stand before the `-` of an identifier"
    if ANY_PYTHON in tables.pythons:
        yield f"a Python is called `{ANY_PYTHON}`, which means: the same for all of them"


def dump(rows: Mapping[str, object], header: str) -> str:
    """Return the text of a table as it is committed: its header, then a section for each row."""
    plain = msgspec.to_builtins(rows)
    return header + "\n".join(_section((name,), row) for name, row in plain.items())


def header_of(text: str) -> str:
    """Return the comment at the top of a table, the `header` of :func:`dump`."""
    head, _, _ = text.partition("\n[")
    return head + "\n"


def _section(path: tuple[str, ...], row: Mapping[str, object]) -> str:
    title = ".".join(map(_key, path))
    own = ""
    below = []
    for key, value in row.items():
        if isinstance(value, dict) and len(path) == 1:
            below.append(_section((*path, key), value))
        else:
            own += f"{_key(key)} = {_inline(value)}\n"
    return "\n".join(([f"[{title}]\n{own}"] if own else []) + below)


def _inline(value: object) -> str:
    match value:
        case dict():
            pairs = (f"{_key(k)} = {_inline(v)}" for k, v in value.items())
            return f"{{ {', '.join(pairs)} }}" if value else "{}"
        case [dict(), *_]:
            return "\n".join(["[", *(f"    {_inline(item)}," for item in value), "]"])
        case list() | tuple():
            return f"[{', '.join(map(_inline, value))}]"
        case _:
            return msgspec.json.encode(value).decode()


def _key(key: str) -> str:
    return f'"{key}"' if "." in key else key
