"""Files for people and for providers: structures, serialised in a stable order, with a header."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import yaml

from torchyard.version import __version__

Yaml = str | int | float | bool | None | Sequence["Yaml"] | Mapping[str, "Yaml"]
"""What a file of a provider consists of."""

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


class CiFile(NamedTuple):
    """One file: its path in the repository, its content, and comments for some of its values."""

    path: str
    document: Mapping[str, Yaml]
    notes: Mapping[str, str] = {}
    measured: Mapping[str, int] = {}
    """Numbers that a provider limits, and that the document does not show."""


def nodes(document: Yaml, *tail: str | int) -> Iterator[tuple[str, Yaml]]:
    """Yield all values of a document whose path ends in these keys, each with its path."""
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
    """Return the texts of a list, or the keys of a table."""
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        return [str(item) for item in value]
    return []


class HeaderFacts(NamedTuple):
    """What a file says about itself."""

    version: str
    is_edited: bool


class _Dumper(yaml.SafeDumper):
    """Indents lists, and shares nothing between values."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - its interface
        super().increase_indent(flow, False)  # noqa: FBT003

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
    """Write texts of several lines as they are, and others as plain as they can be."""
    style = "|" if "\n" in data else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)


def _nothing(dumper: yaml.SafeDumper, _data: None) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:null", "")


_Dumper.add_representer(str, _text)
_Dumper.add_representer(type(None), _nothing)


def dump_yaml(document: Mapping[str, Yaml]) -> str:
    """Return a document as YAML. The same structure gives the same bytes."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=2**16, allow_unicode=True)


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
    """Return what a file's header says; None if torchyard did not write the file."""
    found = _READ.match(text)
    if found is None:
        return None
    return HeaderFacts(found["version"], found["digest"] != body_digest(text[found.end() :]))
