"""Reads build.ninja: the edges of a build, each with its outputs, rule and inputs."""

import re
from pathlib import Path
from typing import NamedTuple

_DOLLAR = re.compile(r"\$(?:([$ :])|\{([\w.-]+)\}|([\w-]+))")
"""An escaped character, or a variable."""
_SPLIT = re.compile(r"(?<!\$) +")
_PHONY = "phony"
_LIBRARIES = "  LINK_LIBRARIES ="
"""Where CMake puts the libraries of a link line."""
_LINKED = re.compile(r"""(?<=\s)-l[^\s"]+|[^\s",=]+\.(?:so(?:\.\d+)*|dylib|a)(?=[\s",]|$)""")
_HERE = "cmake_ninja_workdir"
"""The build directory, which CMake puts before some of its files."""
_ORDERED = "||"
_MARKS = frozenset(("|", "|@"))


class Edge(NamedTuple):
    """A command of a build. What is only `ordered` has to exist before, and is no input.

    `libraries` are those of a link line: paths, and `-lm`.
    """

    outputs: tuple[str, ...]
    rule: str
    inputs: tuple[str, ...]
    ordered: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()

    @property
    def is_phony(self) -> bool:
        """Whether it runs nothing, and only names its inputs."""
        return self.rule == _PHONY


def read_ninja_file(path: Path) -> list[Edge]:
    """Return the edges of a build file, in its order; rules in included files are not read."""
    text = path.read_text(encoding="utf-8").replace("$\n", "")
    variables: dict[str, str] = {}
    edges = []
    for line in text.splitlines():
        if line.startswith("build "):
            edges.append(_edge(line, variables))
        elif line.startswith(_LIBRARIES):
            found = (word.removeprefix(variables.get(_HERE, "/")) for word in _LINKED.findall(line))
            edges[-1] = edges[-1]._replace(libraries=tuple(found))
        elif " = " in line and not line.startswith((" ", "#")):
            name, _, value = line.partition(" = ")
            variables[name] = _expanded(value, variables)
    return edges


def _edge(line: str, variables: dict[str, str]) -> Edge:
    if "$" in line:
        before, after = _halves(line)
        words = [_expanded(word, variables) for word in _words(after)]
        outputs = tuple(_expanded(word, variables) for word in _words(before))
    else:
        before, _, after = line.removeprefix("build ").partition(":")
        words, outputs = _words(after), tuple(_words(before))
    if _ORDERED in words:
        end = words.index(_ORDERED)
        return Edge(outputs, words[0], tuple(words[1:end]), tuple(words[end + 1 :]))
    return Edge(outputs, words[0], tuple(words[1:]))


def _halves(line: str) -> tuple[str, str]:
    """Split at the first colon that is not escaped."""
    found = re.search(r"(?<!\$)(?:\$\$)*:", line)
    at = found.end() if found else len(line)
    return line[len("build ") : at - 1], line[at:]


def _words(text: str) -> list[str]:
    return [word for word in _SPLIT.split(text.strip()) if word and word not in _MARKS]


def _expanded(text: str, variables: dict[str, str]) -> str:
    if "$" not in text:
        return text
    return _DOLLAR.sub(
        lambda found: found[1] or variables.get(found[2] or found[3], ""),
        text,
    )
