"""A `torchyard.toml` as read: values, positions, and changes by `--set`."""

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

from torchyard.config.positions import Location, Path, locate
from torchyard.errors import ConfigError, Span, UsageError
from torchyard.model.toml import TomlError, parse_toml
from torchyard.model.values import COMMAND_LINE, DEFAULT, Origin

Raw = dict[str, Any]  # type: ignore[explicit-any] # TOML that has not been validated yet


class Document:
    """A configuration before decoding. `name` is the file's name in messages and origins."""

    def __init__(self, name: str, text: str, changes: Sequence[str] = ()) -> None:
        self.name = name
        self.text = text
        self.raw = _parse(name, text)
        self._set: dict[Path, str] = {}
        for change in changes:
            self._change(change)

    def _change(self, change: str) -> None:
        """Apply one `--set key=value`.

        The value is parsed as TOML if that is a string, a boolean, a list or a table; else it is a
        string itself, as in `project.version=2.14`: no setting is a number.
        """
        key, equals, value = change.partition("=")
        names = _key_parts(key) if equals else ()
        if not names:
            msg = f"`--set {change}` does not have the form KEY=VALUE"
            raise UsageError(msg, hint="for example --set project.version=2.14.1")
        table = self.raw
        for name in names[:-1]:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                msg = f"`--set {change}`: `{name}` is not a table"
                raise UsageError(msg, hint="only values in tables can be set")
        table[names[-1]] = _toml_value(value)
        self._set[names] = change

    def _change_of(self, path: Path) -> str | None:
        """Return the `--set` that set a value or a table around it, or None."""
        if not self._set:
            return None
        lengths = range(len(path), 0, -1)
        return next((self._set[path[:n]] for n in lengths if path[:n] in self._set), None)

    @cached_property
    def _locations(self) -> dict[Path, Location]:
        return locate(self.text)

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((len(line) + 1 for line in self._lines), initial=0))

    def span(self, path: Path, *, at_key: bool = False) -> Span:
        """Return the span of a value, or of its key, for messages."""
        change = self._change_of(path)
        if change is not None:
            return Span("--set", 1, 1, len(change), change)
        for length in range(len(path), 0, -1):
            span = self._locations.get(path[:length]) or self._below(path[:length])
            if span is not None:
                by_key = span.key is not None and (at_key or length < len(path))
                return self._span(*(span.key if by_key and span.key else span.value))
        return Span(self.name, 1, 1, 1, self._lines[0])

    def _below(self, path: Path) -> Location | None:
        """Return the first location inside a table without a header, as `a` in `[a.b]`."""
        inside = (span for other, span in self._locations.items() if other[: len(path)] == path)
        return next(inside, None)

    def _span(self, start: int, end: int) -> Span:
        line = bisect_right(self._starts, start)
        column = start - self._starts[line - 1]
        text = self._lines[line - 1].rstrip("\r")
        return Span(self.name, line, column + 1, min(end - start, len(text) - column), text)

    def with_string(self, path: Path, value: str) -> "Document":
        """Return the document with another string at a path; the rest of its text is unchanged."""
        start, end = self._locations[path].value
        return Document(self.name, self.text[:start] + json.dumps(value) + self.text[end:])

    def with_item(self, path: Path, value: str) -> "Document":
        """Return the document with a string in the list at a path, added if missing."""
        items = [given for given in self._given if given[:-1] == path]
        if not items:
            msg = f"`{value}` can't be added: `{dotted(path)}` is not a list with values"
            raise ConfigError(msg, hint="add it to the file by hand")
        spans = [self._locations[item].value for item in items]
        if value in (_toml_value(self.text[start:end]) for start, end in spans):
            return self
        end = spans[-1][1]
        return Document(self.name, f"{self.text[:end]}, {json.dumps(value)}{self.text[end:]}")

    def origin(self, path: Path) -> Origin:
        """Return where a value came from."""
        if self._change_of(path) is not None:
            return COMMAND_LINE
        return Origin(self.name, partial(self._line, path)) if path in self._given else DEFAULT

    @cached_property
    def _given(self) -> dict[Path, None]:
        """Return the paths of all values in the file, in its order."""
        return dict.fromkeys(_paths(self.raw, ()))

    def _line(self, path: Path) -> int:
        return self.span(path).line

    def origins(self) -> dict[str, Origin]:
        """Return the origins of all values in the file, by dotted path."""
        return {dotted(path): self.origin(path) for path in self._given}


def _paths(value: object, path: Path) -> Iterator[Path]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _paths(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _paths(item, (*path, index))


def _key_parts(key: str) -> tuple[str, ...]:
    """Return the parts of a dotted key, parsed as TOML, quotes included."""
    try:
        paths = list(_paths(parse_toml(f"{key} = true"), ()))
    except TomlError:
        return ()
    return tuple(str(part) for part in paths[-1])


def _toml_value(text: str) -> object:
    try:
        value = parse_toml(f"value = {text}")["value"]
    except TomlError:
        return text.strip()
    return value if isinstance(value, str | bool | list | dict) else text.strip()


def dotted(path: Path) -> str:
    """Return a path in dotted form: `matrix.exclude[2].python`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def _parse(name: str, text: str) -> Raw:
    try:
        return parse_toml(text)
    except TomlError as error:
        what, at, where = str(error).rpartition(" (at ")
        if not at:
            msg = f"`{name}` can't be read: {error}"
            raise ConfigError(msg) from error
        numbers = [
            int(word) for word in where.rstrip(")").replace(",", "").split() if word.isdigit()
        ]
        lines = text.split("\n")
        line, column = numbers or (len(lines), len(lines[-1]) + 1)
        span = Span(name, line, column, 1, lines[line - 1])
        msg = f"this is not TOML: {what[:1].lower()}{what[1:]}"
        raise ConfigError(msg, span=span) from error
