"""Read the tables in `data/`, and check first their structure, then their values."""

import tomllib
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from torchyard.errors import DataError

Table = TypeVar("Table")


def _none(_: object) -> Iterator[str]:
    yield from ()


def parse_table(
    name: str, text: str, kind: type[Table], problems: Callable[[Table], Iterator[str]] = _none
) -> Table:
    """Read the text of a table; fail with its first problem."""
    try:
        table = msgspec.convert(tomllib.loads(text), kind)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        msg = f"the table data/{name} is malformed: {error}"
        raise DataError(msg) from error
    for problem in problems(table):
        msg = f"the table data/{name} {problem}"
        raise DataError(msg)
    return table
