"""The matrix → the cells that should exist, and why the others don't.

A million cells are too many to ask every rule about each. So cells are handled in blocks: all
cells of one platform, compute and variant, which are also the cells that share a core. Within a
block a cell is a (Python, package) pair, a set of pairs is an integer with a bit for each, and a
rule costs one `&` for the whole block. :func:`verdict` is the same law for a single cell, written
plainly; a property test holds the two together.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

from torchyard.errors import PlanError
from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.matrix import Couple, Matrix, Pattern, any_match
from torchyard.model.recipe import Dimension
from torchyard.model.tables import Tables
from torchyard.model.values import Origin
from torchyard.model.yard import Yard

OUTER: Final = 3
"""How many fields of a cell, from the left, name its block."""

UNAVAILABLE = Origin("table")

Pair = tuple[str, str]
Head = tuple[str, str, str]


class Block(NamedTuple):
    """The cells of one platform, compute and variant. They share a core."""

    head: Head
    mask: int
    pairs: tuple[Pair, ...]


class Absence(NamedTuple):
    """Why cells of the product are not planned."""

    reason: str
    origin: Origin


class Absent(NamedTuple):
    """Cells of one block that are missing for one reason."""

    absence: Absence
    head: Head
    mask: int


class Matcher:
    """A pattern resolved against the values there are: a set for each outer field, and a mask."""

    def __init__(
        self, pattern: Pattern, values: Sequence[Iterable[str]], pairs: Iterable[Pair]
    ) -> None:
        allowed = [
            {value for value in known if not globs or any_match(value, globs)}
            for known, globs in zip(values, pattern.globs, strict=True)
        ]
        self.outer = allowed[:OUTER]
        pythons, packages = allowed[OUTER:]
        self.mask = bits(p in pythons and k in packages for p, k in pairs)

    def reaches(self, head: Head) -> bool:
        """Whether the fields that name a block match."""
        platforms, computes, variants = self.outer
        platform, compute, variant = head
        return platform in platforms and compute in computes and variant in variants

    def at(self, head: Head) -> int:
        """The pairs of a block that match."""
        return self.mask if self.reaches(head) else 0


def bits(flags: Iterable[bool]) -> int:
    """Pack truth values into an integer, the first into the lowest bit."""
    return sum(1 << index for index, flag in enumerate(flags) if flag)


class Expansion:
    """The cells of a matrix, block by block, in the order in which the file lists the values."""

    def __init__(self, yard: Yard, tables: Tables) -> None:
        self.yard = yard
        self.tables = tables
        matrix = yard.matrix
        self.values = _universe(matrix)
        pythons, packages = self.values[OUTER:]
        kinds = tables.packages
        self.pairs: tuple[Pair, ...] = (
            *product(pythons, (p for p in packages if kinds[p].per_python)),
            *((ANY_PYTHON, p) for p in packages if not kinds[p].per_python),
        )
        self._known = (*self.values[:OUTER], (*pythons, ANY_PYTHON), packages)
        self._base = self.matcher(_literal(matrix.values))
        self._couples = [_CoupleMatcher(couple, self.pairs) for couple in matrix.couples]
        self._exclude = [(rule, self.matcher(rule.pattern)) for rule in matrix.exclude]
        self._include = [
            (self.matcher(rule.pattern), [_CoupleMatcher(c, self.pairs) for c in rule.couples])
            for rule in matrix.include
        ]
        self._pairs_of: dict[int, tuple[Pair, ...]] = {}
        self.absent: list[Absent] = []
        self.warnings: list[str] = []
        self.blocks = tuple(self._blocks())
        self._warn_of_idle_rules()

    def matcher(self, pattern: Pattern) -> Matcher:
        return Matcher(pattern, self._known, self.pairs)

    def pairs_of(self, mask: int) -> tuple[Pair, ...]:
        """The pairs whose bits are set."""
        pairs = self._pairs_of.get(mask)
        if pairs is None:
            pairs = tuple(pair for index, pair in enumerate(self.pairs) if mask >> index & 1)
            self._pairs_of[mask] = pairs
        return pairs

    def _blocks(self) -> Iterator[Block]:
        platforms, computes, variants = self.values[:OUTER]
        for head in product(platforms, computes, variants):
            mask = self._admitted(head)
            if mask:
                yield Block(head, mask, self.pairs_of(mask))

    def _admitted(self, head: Head) -> int:
        included = 0
        for matcher, couples in self._include:
            included |= _coupled(matcher.at(head), couples, head)
        wanted = included | _coupled(self._base.at(head), self._couples, head)
        if not wanted:
            return 0
        reason = unavailable(head, self.tables, self.yard)
        if reason:
            self.absent.append(Absent(Absence(reason, UNAVAILABLE), head, wanted))
            return 0
        for rule, matcher in self._exclude:
            hit = wanted & ~included & matcher.at(head)
            if hit:
                self.absent.append(Absent(Absence(rule.reason, rule.origin), head, hit))
                wanted &= ~hit
        return wanted

    def _warn_of_idle_rules(self) -> None:
        busy = {absent.absence.origin for absent in self.absent}
        self.warnings.extend(
            f"the exclusion at {rule.origin} leaves nothing out that is not left out already"
            for rule, _ in self._exclude
            if rule.origin not in busy
        )
        pairs = {
            pair for mask in {block.mask for block in self.blocks} for pair in self.pairs_of(mask)
        }
        seen_in = [{block.head[field] for block in self.blocks} for field in range(OUTER)]
        seen_in += [{pair[field] for pair in pairs} for field in range(2)]
        dimensions = self.yard.project.recipe.dimensions
        for dimension, values, seen in zip(dimensions, self.values, seen_in, strict=True):
            self.warnings.extend(
                f"no cell has {dimension} `{value}`" for value in values if value not in seen
            )


class _CoupleMatcher:
    """A couple resolved against pairs: for the outer values of each row, a mask."""

    def __init__(self, couple: Couple, pairs: Sequence[Pair]) -> None:
        self._outer = [field for field in couple.fields if field < OUTER]
        self._masks: dict[tuple[str, ...], int] = {}
        for row in couple.rows:
            wanted = dict(zip(couple.fields, row, strict=True))
            mask = bits(
                all(
                    pair[field - OUTER] in (value, ANY_PYTHON)
                    for field, value in wanted.items()
                    if field >= OUTER
                )
                for pair in pairs
            )
            key = tuple(wanted[field] for field in self._outer)
            self._masks[key] = self._masks.get(key, 0) | mask

    def at(self, head: Head) -> int:
        return self._masks.get(tuple(head[field] for field in self._outer), 0)


def _coupled(mask: int, couples: Sequence[_CoupleMatcher], head: Head) -> int:
    for couple in couples:
        mask &= couple.at(head)
    return mask


def _universe(matrix: Matrix) -> tuple[tuple[str, ...], ...]:
    """The values of each field: the matrix's own, then those that only an inclusion names."""
    columns = zip(matrix.values, *(rule.pattern.globs for rule in matrix.include), strict=True)
    return tuple(
        tuple(dict.fromkeys(value for values in column for value in values if value != ANY_PYTHON))
        for column in columns
    )


def _literal(values: Sequence[tuple[str, ...]]) -> Pattern:
    """The pattern that admits exactly these values, and no Python where there is none."""
    named = dict(zip(Cell._fields, values, strict=True))
    named["python"] = (*named["python"], ANY_PYTHON)
    return Pattern(**named)


def unavailable(head: Head, tables: Tables, yard: Yard) -> str | None:
    """Say why nothing can be built for a block, whatever the rules want."""
    platform, compute, variant = head
    if platform not in tables.platforms_of(compute):
        return f"{compute} is not made for {platform}"
    blas = tables.platforms[platform].blas
    if yard.project.recipe.variant is Dimension.BLAS and variant not in blas:
        return f"{variant} is not made for {platform}"
    return None


def verdict(cell: Cell, yard: Yard, tables: Tables) -> Absence | None:
    """Say why a cell of known values is not in the plan, or nothing if it is."""
    matrix = yard.matrix
    included = any(rule.matches(cell) for rule in matrix.include)
    absence = None if included else _outside(cell, yard)
    if absence:
        return absence
    reason = unavailable(cell[:OUTER], tables, yard)
    if reason:
        return Absence(reason, UNAVAILABLE)
    for rule in () if included else matrix.exclude:
        if rule.pattern.matches(cell):
            return Absence(rule.reason, rule.origin)
    return None


def _outside(cell: Cell, yard: Yard) -> Absence | None:
    """Say why the product of the dimensions does not reach a cell."""
    dimensions = yard.project.recipe.dimensions
    for dimension, value, known in zip(dimensions, cell, yard.matrix.values, strict=True):
        if value not in known and value != ANY_PYTHON:
            origin = yard.origin(f"matrix.{dimension}")
            return Absence(f"[matrix] has no {dimension} `{value}`", origin)
    for couple in yard.matrix.couples:
        if not couple.admits(cell):
            values = " with ".join(cell[field] for field in couple.fields)
            return Absence(f"no couple has {values}", couple.origin)
    return None


def expand(yard: Yard, tables: Tables) -> Expansion:
    """Expand a yard's matrix, and complain if nothing is left of it."""
    expansion = Expansion(yard, tables)
    if not expansion.blocks:
        reasons = dict.fromkeys(absent.absence.reason for absent in expansion.absent)
        msg = "the matrix is empty: every cell is left out"
        hint = "because " + "; ".join(reasons) if reasons else None
        raise PlanError(msg, hint=hint)
    return expansion
