"""YAML files with a header, serialised in a stable order."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from torchyard.version import __version__

Yaml = str | int | float | bool | None | Sequence["Yaml"] | Mapping[str, "Yaml"]
"""Values in a provider's file."""

_HEADER = """\
# Written by torchyard {version} from {source}: edits are lost, and `torchyard ci check` fails.
# Change [ci], the matrix or [requirements] in {source}, then run: {command}
# body: {digest}

"""
_READ = re.compile(
    r"# Written by torchyard (?P<version>\S+) from .*\n"
    r"(?:#.*\n)*?# body: (?P<digest>[0-9a-f]{16})\n\n"
)
_DIGITS = 16
_PLAIN = re.compile(r"(?![-?:](?: |$)|[ #,\[\]{}&*!|>'\"%@`]|---|\.\.\.)(?:(?!: | #).)+(?<![ :])")
_NO_TEXT = re.compile(
    r"""(?ix) ~ | = | << | null | true | false | yes | no | on | off | y | n
    | [-+]? (?: \d[\d_]* (?:\.[\d_]*)? | \.[\d_]+ ) (?: e[-+]?\d+ )?
    | [-+]? 0[box][\da-f_]+ | [-+]? \. (?: inf | nan )
    | [-+]? \d[\d_]* (?: :[0-5]?\d )+ (?: \.[\d_]* )? | \d{4}-\d\d?-\d\d? (?: [t\s].* )?"""
)
"""Plain scalars that YAML 1.1 or 1.2 does not read as text."""


class CiFile(NamedTuple):
    """A file: its path in the repository, its content, and comments on values."""

    path: str
    document: Mapping[str, Yaml]
    notes: Mapping[str, str] = {}
    measured: Mapping[str, int] = {}
    """Values that a provider limits, and that are not in the document."""


def nodes(document: Yaml, *tail: str | int) -> Iterator[tuple[str, Yaml]]:
    """Yield the path and value of each node whose path ends in these keys."""
    yield from _nodes(document, tail, ())


def _nodes(
    document: Yaml, tail: tuple[str | int, ...], path: tuple[str | int, ...]
) -> Iterator[tuple[str, Yaml]]:
    if path[len(path) - len(tail) :] == tail and len(path) >= len(tail):
        yield ".".join(map(str, path)), document
    children: Iterable[tuple[str | int, Yaml]] = ()
    if isinstance(document, Mapping):
        children = document.items()
    elif isinstance(document, Sequence) and not isinstance(document, str):
        children = enumerate(document)
    for key, child in children:
        yield from _nodes(child, tail, (*path, key))


def texts_in(value: Yaml) -> list[str]:
    """Return the strings of a list, or the keys of a table."""
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        return [str(item) for item in value]
    return []


class HeaderFacts(NamedTuple):
    """The facts in a file's header."""

    version: str
    is_edited: bool


def dump_yaml(document: Mapping[str, Yaml]) -> str:
    """Return a document as YAML; equal documents give equal bytes."""
    return f"{_after(document, chr(10))[1:]}\n"


def _after(value: Yaml, line: str) -> str:
    """Return the text after a key or a dash; `line` starts a new line at the right depth."""
    inner = f"{line}  "
    if isinstance(value, Mapping) and value:
        return "".join(f"{line}{_scalar(key)}:{_after(item, inner)}" for key, item in value.items())
    if isinstance(value, Sequence) and value and not isinstance(value, str):
        return "".join(f"{line}- {_after(item, inner).lstrip()}" for item in value)
    return "" if value is None else f" {_scalar(value, line)}"


def _scalar(value: Yaml, line: str = "") -> str:
    """Return text as a plain scalar where possible, everything else as JSON."""
    if not isinstance(value, str):
        return json.dumps(value)
    lines = value.split("\n")
    if len(lines) == 1 and value.isprintable():
        is_plain = _PLAIN.fullmatch(value) and not _NO_TEXT.fullmatch(value)
        return value if is_plain else "'{}'".format(value.replace("'", "''"))
    if line and all(part.isprintable() and part[-1:] != " " for part in lines):
        indent = "" if lines[0].lstrip(" ") == lines[0] != "" else "2"
        ending = "-" if lines[-1] else "" if lines[-2] else "+"
        body = (f"{line}{part}" if part else "\n" for part in value.removesuffix("\n").split("\n"))
        return f"|{indent}{ending}{''.join(body)}"
    kept = (
        json.dumps(c)[1:-1] if c < "\x7f" else c if c.isprintable() else f"\\U{ord(c):08x}"
        for c in value
    )
    return f'"{"".join(kept)}"'


def render(file: CiFile, *, source: str, command: str) -> str:
    """Return the text of a file, with its header."""
    body = dump_yaml(file.document)
    for value, note in file.notes.items():
        body = re.sub(rf"(?m){re.escape(value)}$", f"{value} # {note}", body)
    header = _HEADER.format(
        version=__version__, source=source, command=command, digest=body_digest(body)
    )
    return header + body


def body_digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:_DIGITS]


def read_header(text: str) -> HeaderFacts | None:
    """Return the facts in a file's header, or None if torchyard did not write the file."""
    found = _READ.match(text)
    if found is None:
        return None
    return HeaderFacts(found["version"], found["digest"] != body_digest(text[found.end() :]))
