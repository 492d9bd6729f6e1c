"""Reads build.ninja: the edges of a build, each with its outputs, rule and inputs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_DOLLAR = re.compile(r"\$(?:([$ :])|\{([\w.-]+)\}|([\w-]+))")
"""An escaped character, or a variable."""
_SPLIT = re.compile(r"(?<!\$) +")
_PHONY = "phony"


class Edge(NamedTuple):
    """A command of a build. Inputs include those that only have to exist before."""

    outputs: tuple[str, ...]
    rule: str
    inputs: tuple[str, ...]

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
        elif " = " in line and not line.startswith((" ", "#")):
            name, _, value = line.partition(" = ")
            variables[name] = _expanded(value, variables)
    return edges


def _edge(line: str, variables: dict[str, str]) -> Edge:
    if "$" in line:
        before, after = _halves(line)
        words = [_expanded(word, variables) for word in _words(after)]
        outputs = tuple(_expanded(word, variables) for word in _words(before))
        return Edge(outputs, words[0], tuple(words[1:]))
    before, _, after = line.removeprefix("build ").partition(":")
    rule, *inputs = _words(after)
    return Edge(tuple(_words(before)), rule, tuple(inputs))


def _halves(line: str) -> tuple[str, str]:
    """Split at the first colon that is not escaped."""
    found = re.search(r"(?<!\$)(?:\$\$)*:", line)
    at = found.end() if found else len(line)
    return line[len("build ") : at - 1], line[at:]


def _words(text: str) -> Iterator[str]:
    return (word for word in _SPLIT.split(text.strip()) if word and word not in ("|", "||", "|@"))


def _expanded(text: str, variables: dict[str, str]) -> str:
    if "$" not in text:
        return text
    return _DOLLAR.sub(
        lambda found: found[1] or variables.get(found[2] or found[3], ""),
        text,
    )
