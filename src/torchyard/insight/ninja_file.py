"""Reads build.ninja: the edges of a build, each with its outputs, rule and inputs."""

import re
from pathlib import Path
from typing import NamedTuple

from torchyard.errors import BuildError

_DOLLAR = re.compile(r"\$(?:([$ :])|\{([\w.-]+)\}|([\w-]+))")
"""An escaped character, or a variable."""
_SPLIT = re.compile(r"(?<!\$) +")
_PHONY = "phony"
_LONGEST = 1 << 20
"""The most characters of an expanded text: variables of variables could take all memory."""
_FIRST = 4096
"""The length of text to search for Windows line endings."""
_LIBRARIES = "\n  LINK_LIBRARIES = "
"""The variable in which CMake puts the libraries of a link line."""
_LINKED = re.compile(r"""(?<!\S)-l[^\s"]+|[^\s",=]+\.(?:so(?:\.\d+)*|dylib|a)(?=[\s",]|$)""")
_LINK = "\n  LINK_"
_LINK_VALUE = re.compile(r"\n  LINK_(?:ARGS|FLAGS|LIBRARIES|PATH) = (.*)")
_HERE = "cmake_ninja_workdir"
"""The build directory, a prefix of CMake's file names."""
_ORDERED = "||"
_MARKS = frozenset(("|", "|@"))


class Edge(NamedTuple):
    """A command of a build; `ordered` files must exist before it, but are no inputs.

    `libraries` are from the link line: paths, and `-lm`. `link` are all its variables, as a shell
    reads them.
    """

    outputs: tuple[str, ...]
    rule: str
    inputs: tuple[str, ...]
    ordered: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    link: str = ""

    @property
    def is_phony(self) -> bool:
        """Whether it runs no command, and only names its inputs."""
        return self.rule == _PHONY


def read_ninja_file(path: Path) -> list[Edge]:
    """Return the edges of a build file in order, without those of included files."""
    return parse_ninja_file(path.read_bytes())


def parse_ninja_file(data: bytes) -> list[Edge]:
    """Return the edges of a build file's content."""
    text = data.decode(errors="replace")
    if text.find("\r\n", 0, _FIRST) >= 0:
        text = text.replace("\r\n", "\n")
    if "$\n" in text:
        text = text.replace("$\n", "")
    variables: dict[str, str] = {}
    first, *blocks = text.split("\nbuild ")
    edges: list[Edge] = []
    if first.startswith("build "):
        blocks.insert(0, first.removeprefix("build "))
    else:
        _assign(first, variables)
    for block in blocks:
        end = block.find("\n")
        edge = _edge(block[:end] if end >= 0 else block, variables)
        if _LIBRARIES in block:
            edge = edge._replace(libraries=_libraries(block, variables.get(_HERE, "")))
        if _LINK in block:
            words = " ".join(_LINK_VALUE.findall(block))
            edge = edge._replace(link=_expanded(words, variables))
        edges.append(edge)
        after = 0 if "\nrule " in block else max(block.rfind("\n  "), end, 0)
        _assign(block[after + 1 :], variables)
    return edges


def _libraries(block: str, here: str) -> tuple[str, ...]:
    line = block.partition(_LIBRARIES)[2].partition("\n")[0]
    return tuple(word.removeprefix(here) for word in _LINKED.findall(line))


def _assign(text: str, variables: dict[str, str]) -> None:
    """Read the file's variables; indented ones belong to an edge or a rule."""
    if " = " in text:
        for line in text.splitlines():
            name, equals, value = line.partition(" = ")
            if equals and not line.startswith((" ", "#")):
                variables[name] = _expanded(value, variables)


def _edge(line: str, variables: dict[str, str]) -> Edge:
    if "$" in line:
        before, after = _halves(line)
        words = [_expanded(word, variables) for word in _SPLIT.split(after.strip())]
        outputs = [_expanded(word, variables) for word in _SPLIT.split(before.strip())]
    else:
        before, _, after = line.partition(":")
        words, outputs = after.split(), before.split()
    ordered: tuple[str, ...] = ()
    if _ORDERED in words:
        end = words.index(_ORDERED)
        words, ordered = words[:end], _files(words[end + 1 :])
    rule = words[0] if words else ""
    return Edge(_files(outputs), rule, _files(words[1:]), ordered)


def _files(words: list[str]) -> tuple[str, ...]:
    if _MARKS.isdisjoint(words):
        return tuple(words)
    return tuple(word for word in words if word not in _MARKS)


def _halves(line: str) -> tuple[str, str]:
    """Split at the first unescaped colon."""
    found = re.search(r"(?<!\$)(?:\$\$)*:", line)
    at = found.end() if found else len(line)
    return line[: at - 1], line[at:]


def _expanded(text: str, variables: dict[str, str]) -> str:
    """Replace variables; fail if that makes far more than any build has."""
    if "$" not in text:
        return text
    left = _LONGEST

    def value(found: re.Match[str]) -> str:
        nonlocal left
        known = found[1] or variables.get(found[2] or found[3], "")
        left -= len(known)
        if left < 0:
            msg = f"a variable in build.ninja is longer than {_LONGEST:,} characters"
            raise BuildError(msg, hint="it is not CMake's: look who wrote the file")
        return known

    return _DOLLAR.sub(value, text)
