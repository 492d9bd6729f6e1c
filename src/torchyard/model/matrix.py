"""The packages that should exist: dimensions, and rules over them."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import cache
from typing import Literal

from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.recipe import Stage
from torchyard.model.toolchain import Backend
from torchyard.model.values import Origin, Value

_SIGNS = frozenset("*?[")


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    """Compile a shell glob; `*` also matches `/`, so that `*/cu130*` matches whole cells."""
    return re.compile(translate(pattern))


def matches(text: str, pattern: str) -> bool:
    """Return whether a glob matches; plain words, the most common, need no regular expression."""
    if text == pattern:
        return True
    return is_glob(pattern) and _glob(pattern).match(text) is not None


def is_glob(pattern: str) -> bool:
    return not _SIGNS.isdisjoint(pattern)


def any_match(text: str, patterns: Iterable[str]) -> bool:
    return any(matches(text, pattern) for pattern in patterns)


@cache
def _admits(value: str, globs: tuple[str, ...]) -> bool:
    """Return whether a value of a dimension matches; cached, as values and globs are few."""
    return any_match(value, globs)


class Pattern(Value, kw_only=True):
    """A partial cell: globs for some of its dimensions; empty ones match all values."""

    platform: tuple[str, ...] = ()
    compute: tuple[str, ...] = ()
    variant: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    package: tuple[str, ...] = ()

    @property
    def globs(self) -> tuple[tuple[str, ...], ...]:
        """The globs in the order of a cell's fields."""
        return (self.platform, self.compute, self.variant, self.python, self.package)

    def matches(self, scope: Sequence[str]) -> bool:
        """Return whether a cell matches, or its first fields."""
        for value, globs in zip(scope, self.globs, strict=False):
            if globs and not _admits(value, globs):
                return False
        return True


class Couple(Value, kw_only=True):
    """Fields of a cell that vary together: only these combinations exist."""

    fields: tuple[int, ...]
    rows: tuple[tuple[str, ...], ...]
    origin: Origin

    def admits(self, scope: Sequence[str]) -> bool:
        """Return whether any row fits a cell, or its first fields.

        A package that is the same for every Python fits each Python's row.
        """
        given = [index for index, field in enumerate(self.fields) if field < len(scope)]
        return any(
            all(scope[self.fields[index]] in (row[index], ANY_PYTHON) for index in given)
            for row in self.rows
        )


class Exclusion(Value, kw_only=True):
    """Cells to leave out, and the reason, which plans show."""

    pattern: Pattern
    reason: str
    origin: Origin


class Inclusion(Value, kw_only=True):
    """Cells to add to the product, even if an exclusion matches them.

    The pattern lists plain values for every field; `named` are the fields that the rule
    sets, `couples` those that still apply to it.
    """

    pattern: Pattern
    reason: str
    origin: Origin
    named: tuple[int, ...] = ()
    couples: tuple[Couple, ...] = ()

    def matches(self, scope: Sequence[str]) -> bool:
        return self.pattern.matches(scope) and all(c.admits(scope) for c in self.couples)


class Matrix(Value, kw_only=True):
    """The values of each field of a cell, and the rules over them."""

    values: tuple[tuple[str, ...], ...]
    couples: tuple[Couple, ...] = ()
    exclude: tuple[Exclusion, ...] = ()
    include: tuple[Inclusion, ...] = ()


def values_of(matrix: Matrix, field: str) -> list[str]:
    """Return all values of a field of cells, such as `python`, also those of single inclusions."""
    index = Cell._fields.index(field)
    more = (value for rule in matrix.include for value in rule.pattern.globs[index])
    return list(dict.fromkeys((*matrix.values[index], *more)))


class Subset(Value, kw_only=True):
    """A named part of the matrix, such as the packages that pull requests build."""

    name: str
    pattern: Pattern = Pattern()
    cells: tuple[str, ...] = ()
    choose: Literal["all", "pairs"] = "all"
    """Whether to take all of its cells, or a few that cover all pairs of values."""


class Needs(Value, kw_only=True):
    """What a job needs from a machine. It does not affect the result."""

    memory: int | None = None
    disk: int | None = None
    time: int | None = None
    capabilities: tuple[str, ...] = ()

    def over(self, other: "Needs") -> "Needs":
        """Return these needs, with missing ones from `other`."""
        return Needs(
            memory=other.memory if self.memory is None else self.memory,
            disk=other.disk if self.disk is None else self.disk,
            time=other.time if self.time is None else self.time,
            capabilities=self.capabilities or other.capabilities,
        )

    def joined(self, other: "Needs") -> "Needs":
        """Return the needs of both together."""
        return Needs(
            memory=max(self.memory or 0, other.memory or 0),
            disk=max(self.disk or 0, other.disk or 0),
            capabilities=tuple(dict.fromkeys((*self.capabilities, *other.capabilities))),
        )


class Override(Value, kw_only=True):
    """Settings for the jobs of some stages in matching cells."""

    pattern: Pattern
    stages: tuple[Stage, ...]
    origin: Origin
    env: dict[str, str] = {}
    cmake: dict[str, str] = {}
    archs: tuple[str, ...] = ()
    pass_env: tuple[str, ...] = ()
    backend: Backend | None = None
    cache: bool | None = None
    needs: Needs = Needs()
