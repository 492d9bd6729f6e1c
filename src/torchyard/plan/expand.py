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
from torchyard.model.config import Config
from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.matrix import Couple, Matrix, Pattern, any_match
from torchyard.model.recipe import Dimension
from torchyard.model.tables import Tables
from torchyard.plan.admission import TABLES, Absence
from torchyard.plan.constraints import Head, impossible, unreleased

OUTER: Final = 3
"""How many fields of a cell, from the left, name its block."""

Pair = tuple[str, str]


class Block(NamedTuple):
    """The cells of one platform, compute and variant. They share a core."""

    head: Head
    mask: int
    pairs: tuple[Pair, ...]


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

    def __init__(self, config: Config, tables: Tables) -> None:
        self.config = config
        self.tables = tables
        matrix = config.matrix
        self.values = _universe(matrix)
        pythons, packages = self.values[OUTER:]
        kinds = tables.packages
        self.pairs: tuple[Pair, ...] = (
            *product(pythons, (p for p in packages if kinds[p].per_python)),
            *((ANY_PYTHON, p) for p in packages if not kinds[p].per_python),
        )
        self._known = (*self.values[:OUTER], (*pythons, ANY_PYTHON), packages)
        self._pinned = bits(kinds[package].pinned for _, package in self.pairs)
        self._base = self.matcher(_literal(matrix.values))
        self._couples = [_CoupleMatcher(couple, self.pairs) for couple in matrix.couples]
        self._exclude = [self.matcher(rule.pattern) for rule in matrix.exclude]
        self._include = [
            (self.matcher(rule.pattern), [_CoupleMatcher(c, self.pairs) for c in rule.couples])
            for rule in matrix.include
        ]
        self._pairs_of: dict[int, tuple[Pair, ...]] = {}
        self.absent: list[Absent] = []
        self.left_out = [0] * len(matrix.exclude)
        """How many cells each exclusion leaves out."""
        self.taken_in = [0] * len(matrix.include)
        """How many cells each inclusion takes in that would not be there without one."""
        self.blocks = tuple(self._blocks())

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
        """The pairs of a block that should exist: the product less exclusions, plus inclusions."""
        base = _coupled(self._base.at(head), self._couples, head)
        inclusions = [_coupled(m.at(head), couples, head) for m, couples in self._include]
        included = 0
        for mask in inclusions:
            included |= mask
        wanted = base | included
        if not wanted:
            return 0
        wanted &= ~self._can_not_be(head, wanted)
        excluded = 0
        for index, matcher in enumerate(self._exclude):
            hit = matcher.at(head) & wanted & ~excluded
            excluded |= hit
            self._leave_out(index, head, hit & ~included)
        admitted = base & ~excluded
        for index, mask in enumerate(inclusions):
            self.taken_in[index] += (mask & wanted & ~admitted).bit_count()
            admitted |= mask
        return admitted & wanted

    def _leave_out(self, index: int, head: Head, mask: int) -> None:
        """Note what an exclusion leaves out."""
        if mask:
            rule = self.config.matrix.exclude[index]
            self.absent.append(Absent(Absence(rule.reason, rule.origin), head, mask))
            self.left_out[index] += mask.bit_count()

    def _can_not_be(self, head: Head, wanted: int) -> int:
        """The wanted pairs of a block that the tables rule out."""
        reason = impossible(head, self.config, self.tables)
        ruled_out = wanted
        if not reason and self.config.project.recipe.variant is Dimension.TORCH:
            reason = unreleased(head, self.config, self.tables)
            ruled_out &= self._pinned
        if not reason or not ruled_out:
            return 0
        self.absent.append(Absent(Absence(reason, TABLES), head, ruled_out))
        return ruled_out

    def check_pins(self) -> None:
        """Fail if the project's own release says nothing of a compute that packages need."""
        for block in self.blocks:
            reason = unreleased(block.head, self.config, self.tables)
            if reason and block.mask & self._pinned:
                pair = self.pairs_of(block.mask & self._pinned)[0]
                compute = block.head[1]
                known = [n for n, r in self.tables.releases.items() if compute in r.libraries]
                msg = f"{reason}, so the libraries of {Cell(*block.head, *pair).path} are unknown"
                hint = (
                    "exclude such cells, or name a release to take the libraries of: "
                    f"[project] release = {' or '.join(known)}"
                )
                raise PlanError(msg, hint=hint)


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


def expand(config: Config, tables: Tables) -> Expansion:
    """Expand a config's matrix, and complain if that leads to nothing usable."""
    expansion = Expansion(config, tables)
    if not expansion.blocks:
        reasons = dict.fromkeys(absent.absence.reason for absent in expansion.absent)
        msg = "the matrix is empty: every cell is left out"
        hint = "because " + "; ".join(reasons) if reasons else None
        raise PlanError(msg, hint=hint)
    expansion.check_pins()
    return expansion
