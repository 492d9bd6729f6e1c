"""Decode raw TOML into a spec; report all mismatches at once, each with its position."""

from collections.abc import Iterator, Mapping
from datetime import date
from types import NoneType, UnionType
from typing import Annotated, TypeVar, get_args, get_origin

import msgspec

from torchyard.config.document import Document, dotted
from torchyard.config.positions import Path
from torchyard.config.spec import FileSpec
from torchyard.errors import ConfigError, Diagnostic
from torchyard.model.suggest import did_you_mean, nearest

Spec = TypeVar("Spec", bound=msgspec.Struct)


def decode(document: Document) -> FileSpec:
    """Return the document decoded as a spec."""
    return decode_as(document, FileSpec)


def decode_as(document: Document, kind: type[Spec]) -> Spec:
    """Return the document decoded as `kind`; problems are located only if decoding fails."""
    try:
        return msgspec.convert(document.raw, kind)
    except msgspec.ValidationError as error:
        found = list(diagnose(document, document.raw, kind, ()))
        raise ConfigError.of(found) from error


def diagnose(
    document: Document, value: object, expected: object, path: Path
) -> Iterator[Diagnostic]:
    """Yield where a value is not of the expected type."""
    origin = get_origin(expected)
    if origin is Annotated:
        yield from diagnose(document, value, get_args(expected)[0], path)
    elif isinstance(expected, type) and issubclass(expected, msgspec.Struct):
        yield from _diagnose_table(document, value, expected, path)
    elif origin is UnionType and (kind := _member_for(value, expected)):
        yield from diagnose(document, value, kind, path)
    elif origin in (list, tuple) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from diagnose(document, item, get_args(expected)[0], (*path, index))
    elif origin is dict and isinstance(value, dict):
        for key, item in value.items():
            yield from diagnose(document, item, get_args(expected)[1], (*path, key))
    else:
        yield from _diagnose_value(document, value, expected, path)


def _member_for(value: object, expected: object) -> object | None:
    """Return the member of a union that a list or a table was meant for, or None."""
    members = get_args(expected)
    if isinstance(value, list):
        return next((kind for kind in members if get_origin(kind) is list), None)
    tables = (
        kind for kind in members if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    )
    return next(tables, None) if isinstance(value, dict) else None


def _diagnose_table(
    document: Document, value: object, expected: type[msgspec.Struct], path: Path
) -> Iterator[Diagnostic]:
    where = _table_name(path)
    if not isinstance(value, dict):
        yield Diagnostic(f"`{dotted(path)}` must be a table", document.span(path))
        return
    fields = {field.name: field for field in msgspec.structs.fields(expected)}
    for key, item in value.items():
        if key in fields:
            yield from diagnose(document, item, fields[key].type, (*path, key))
        else:
            span = document.span((*path, key), at_key=True)
            yield Diagnostic(f"unknown key `{key}` in {where}", span, did_you_mean(key, fields))
    meant = {nearest(key, fields) for key in value if key not in fields}
    for name, field in fields.items():
        if field.required and name not in value and name not in meant:
            yield Diagnostic(f"{where} lacks the required key `{name}`", document.span(path))


def _table_name(path: Path) -> str:
    """Return the name of a table, as in its header."""
    if not path:
        return "this file"
    return f"[[{dotted(path[:-1])}]]" if isinstance(path[-1], int) else f"[{dotted(path)}]"


def _diagnose_value(
    document: Document, value: object, expected: object, path: Path
) -> Iterator[Diagnostic]:
    try:
        msgspec.convert(value, expected)
    except msgspec.ValidationError:
        choices = [choice for choice in get_args(expected) if isinstance(choice, str)]
        if choices and isinstance(value, str):
            what = f"`{dotted(path)}` can't be `{value}`"
            yield Diagnostic(what, document.span(path), did_you_mean(value, choices))
            return
        what = f"`{dotted(path)}` must be {_kind(expected)}, not {_kind(type(value))}"
        wants_list = list[str] in (expected, *get_args(expected))
        hint = f'write ["{value}"]' if wants_list and isinstance(value, str) else None
        yield Diagnostic(what, document.span(path), hint)


def _kind(expected: object) -> str:
    """Return a readable name of a type."""
    options = [option for option in get_args(expected) if option is not NoneType]
    if get_origin(expected) is UnionType:
        return " or ".join(map(_kind, options))
    if options and isinstance(options[0], str):
        return " or ".join(f"`{option}`" for option in options)
    return _WORDS.get(expected, getattr(expected, "__name__", str(expected)))


_WORDS: Mapping[object, str] = {
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a table",
    date: "a day such as 2027-06-30",
    list[str]: "a list of strings",
    tuple[str, ...]: "a list of strings",
    dict[str, str]: "a table of strings",
}
