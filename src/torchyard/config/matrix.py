"""Evaluate the matrix of a spec; check every name against the tables."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from torchyard.config.cell_spec import CellSpec, Globs
from torchyard.config.document import Document
from torchyard.config.positions import Path
from torchyard.config.spec import CoupleSpec, MatrixSpec, RuleSpec
from torchyard.errors import Diagnostic
from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.matrix import Couple, Exclusion, Inclusion, Matrix, Pattern, any_match
from torchyard.model.recipe import Dimension, Recipe
from torchyard.model.suggest import did_you_mean
from torchyard.model.tables import TORCH_RELEASE, Tables
from torchyard.model.values import Origin


class Problems:
    """The problems of a document, collected to be reported at once."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.found: list[Diagnostic] = []

    def add(self, path: Path, what: str, hint: str | None = None, *, at_key: bool = False) -> None:
        self.found.append(Diagnostic(what, self.document.span(path, at_key=at_key), hint))

    def add_empty(self, path: Path) -> None:
        """Refuse an empty list of globs, which could be mistaken for all values."""
        self.add(path, "an empty list matches nothing", "leave the key out to match all values")


class MatrixReader:
    """Evaluates everything that selects cells: the matrix, its rules, subsets and overrides."""

    def __init__(
        self, problems: Problems, recipe: Recipe, tables: Tables, cells: tuple[Cell, ...] = ()
    ) -> None:
        """`cells` are the outputs of a conda recipe: the matrix has these, and gives no values."""
        self.problems = problems
        self.recipe = recipe
        self.known = tables.known(recipe)
        self.cells = cells

    def matrix(self, spec: MatrixSpec) -> Matrix:
        path: Path = ("matrix",)
        values = self._given(spec, path)
        couples = []
        for index, entry in enumerate(spec.couple):
            here = (*path, "couple", index)
            coupled = self._given(entry, here)
            couples.append(self._couple(coupled, here))
            for dimension, column in coupled.items():
                if dimension in values:
                    what = f"the values of `{dimension}` are given twice"
                    hint = "a dimension is listed in [matrix] or in one [[matrix.couple]]"
                    self.problems.add((*here, dimension), what, hint, at_key=True)
                values[dimension] = tuple(dict.fromkeys(column))
        if self.cells:
            couples.append(Couple(fields=(*range(5),), rows=self.cells, origin=self._origin(path)))
            values = self._rendered(values, path)
        for dimension in self.recipe.dimensions:
            if not values.get(dimension) and not self.cells:
                self.problems.add(path, f"[matrix] gives no values for `{dimension}`")
        for dimension, given in values.items():
            for index, value in enumerate(given):
                if value in given[:index]:
                    self.problems.add((*path, dimension, index), f"`{value}` is listed twice")
        columns = tuple(values.get(dimension, ()) for dimension in self.recipe.dimensions)
        return Matrix(
            values=columns,
            couples=tuple(couples),
            exclude=tuple(
                Exclusion(
                    pattern=self._rule_pattern(rule, (*path, "exclude", index)),
                    reason=rule.reason,
                    origin=self._origin((*path, "exclude", index)),
                )
                for index, rule in enumerate(spec.exclude)
            ),
            include=tuple(
                self._inclusion(rule, (*path, "include", index), columns, couples)
                for index, rule in enumerate(spec.include)
            ),
        )

    def _rendered(
        self, given: Mapping[Dimension, tuple[str, ...]], path: Path
    ) -> dict[Dimension, tuple[str, ...]]:
        """Return the values of a conda recipe's cells; the file gives platforms only."""
        for dimension in given.keys() - {Dimension.PLATFORM}:
            what = f"recipe `{self.recipe.name}` reads the values of `{dimension}` from its recipe"
            hint = "leave it out; [[matrix.exclude]] and [subset] can name some of them"
            self.problems.add((*path, dimension), what, hint, at_key=True)
        return {
            dimension: tuple(value for value in dict.fromkeys(column) if value != ANY_PYTHON)
            for dimension, column in zip(
                self.recipe.dimensions, zip(*self.cells, strict=True), strict=True
            )
        }

    def _given(self, spec: MatrixSpec | CoupleSpec, path: Path) -> dict[Dimension, tuple[str, ...]]:
        """Return the values that a table lists; add unknown ones to the problems."""
        given: dict[Dimension, tuple[str, ...]] = {}
        for dimension in Dimension:
            values: list[str] | None = getattr(spec, dimension)
            if values is None or not self._has(dimension, path):
                continue
            for index, value in enumerate(values):
                if value not in self.known[dimension]:
                    hint = _hint(dimension, value, self.known[dimension])
                    what = f"unknown {dimension} `{value}`"
                    self.problems.add((*path, dimension, index), what, hint)
            given[dimension] = tuple(values)
        return given

    def _has(self, dimension: Dimension, path: Path) -> bool:
        """Return whether the recipe has a dimension; report a problem if not."""
        if dimension in self.known:
            return True
        what = f"recipe `{self.recipe.name}` has no dimension `{dimension}`"
        hint = f"its dimensions are {', '.join(self.recipe.dimensions)}"
        self.problems.add((*path, dimension), what, hint, at_key=True)
        return False

    def _couple(self, columns: Mapping[Dimension, Sequence[str]], path: Path) -> Couple:
        if len(columns) < 2:  # noqa: PLR2004 - a couple is two
            self.problems.add(path, "a couple needs at least two dimensions")
        lengths = {dimension: len(column) for dimension, column in columns.items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{dimension} has {count}" for dimension, count in lengths.items())
            hint = "give the lists the same length: their values are paired"
            self.problems.add(path, f"the lists of this couple differ in length: {counts}", hint)
        return Couple(
            fields=tuple(self.recipe.dimensions.index(dimension) for dimension in columns),
            rows=tuple(zip(*columns.values(), strict=False)),
            origin=self._origin(path),
        )

    def _inclusion(
        self,
        rule: RuleSpec,
        path: Path,
        columns: Sequence[tuple[str, ...]],
        couples: Sequence[Couple],
    ) -> Inclusion:
        """Return an inclusion with plain values; expand globs to the values of the matrix."""
        globs = self._rule_pattern(rule, path).globs
        plain = [
            tuple(v for v in known if v in wanted or (v in column and any_match(v, wanted)))
            if wanted
            else column
            for wanted, column, known in zip(globs, columns, self.known.values(), strict=True)
        ]
        for dimension, wanted, found in zip(self.recipe.dimensions, globs, plain, strict=True):
            if wanted and not found and ANY_PYTHON not in wanted:
                what = f"this matches no {dimension} of the matrix, so it includes nothing"
                hint = "globs match only values of the matrix; plain names may be any known value"
                self.problems.add((*path, dimension), what, hint)
        named = dict(zip(Cell._fields, plain, strict=True))
        named["python"] = (*named["python"], ANY_PYTHON)
        return Inclusion(
            pattern=Pattern(**named),
            reason=rule.reason,
            origin=self._origin(path),
            named=tuple(field for field, wanted in enumerate(globs) if wanted),
            couples=tuple(c for c in couples if not all(globs[field] for field in c.fields)),
        )

    def _rule_pattern(self, rule: RuleSpec, path: Path) -> Pattern:
        pattern = self.pattern(rule, path)
        if not any(pattern.globs):
            self.problems.add(path, "this rule names no dimension, so it applies to every cell")
        if not rule.reason.strip():
            self.problems.add((*path, "reason"), "this reason is empty")
        return pattern

    def _origin(self, path: Path) -> Origin:
        return self.problems.document.origin(path)

    def restriction(self, spec: CellSpec, path: Path) -> Pattern:
        """Return the pattern of cells to keep; packages without a Python match any `python`."""
        pattern = self.pattern(spec, path)
        if not pattern.python:
            return pattern
        return msgspec.structs.replace(pattern, python=(*pattern.python, ANY_PYTHON))

    def pattern(self, spec: CellSpec, path: Path) -> Pattern:
        """Return the pattern of a partial cell; each of its globs must match a known value."""
        globs: dict[str, tuple[str, ...]] = {}
        for dimension in Dimension:
            written: Globs | None = getattr(spec, dimension)
            if written is None or not self._has(dimension, path):
                continue
            patterns = as_tuple(written)
            known = self.known[dimension]
            if not patterns:
                self.problems.add_empty((*path, dimension))
            admitted = (*known, ANY_PYTHON) if dimension is Dimension.PYTHON else known
            for index, pattern in enumerate(patterns):
                if not any(any_match(value, (pattern,)) for value in admitted):
                    key: Path = (*path, dimension)
                    if isinstance(written, list):
                        key = (*key, index)
                    what = f"`{pattern}` matches no known {dimension}"
                    self.problems.add(key, what, did_you_mean(pattern, known))
            globs[Cell._fields[self.recipe.dimensions.index(dimension)]] = patterns
        return Pattern(**globs)


def named_values(spec: MatrixSpec, dimension: Dimension) -> Iterator[str]:
    """Yield the values and globs that a matrix names for a dimension."""
    yield from getattr(spec, dimension) or ()
    for couple in spec.couple:
        yield from getattr(couple, dimension) or ()
    for rule in spec.include:
        yield from as_tuple(getattr(rule, dimension))


def _hint(dimension: Dimension, value: str, known: tuple[str, ...]) -> str:
    """Return a hint for an unknown value."""
    if dimension is Dimension.TORCH and TORCH_RELEASE.fullmatch(value):
        return f"`torchyard lock` looks for it in the index; the tables have up to {known[-1]}"
    hint = did_you_mean(value, known)
    if dimension in (Dimension.COMPUTE, Dimension.PYTHON):
        hint += f"{'' if hint.endswith('?') else ';'} `torchyard config update` reads new ones"
    return hint


def as_tuple(written: Globs | None) -> tuple[str, ...]:
    if written is None:
        return ()
    return (written,) if isinstance(written, str) else tuple(written)
