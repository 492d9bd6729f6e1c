"""Merge the rows of a file, `[tables.…]`, over the shipped ones.

A row of the file has only the keys that differ, at any depth: a release can get one
different pin, a compute platform different architectures.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from torchyard.compute.registry import compute_platforms, platform_for
from torchyard.config.decode import diagnose
from torchyard.config.matrix import Problems
from torchyard.config.positions import Path
from torchyard.config.spec import RowsSpec, TablesSpec
from torchyard.config.tables import table_problems
from torchyard.errors import ConfigError
from torchyard.model.tables import BuildPreset, Compute, Python, Release, SourceTree, Tables
from torchyard.model.values import Value

Row = TypeVar("Row", bound=Value)


def merge_tables(spec: TablesSpec, problems: Problems, shipped: Tables) -> Tables:
    """Return the tables with the rows of a file, or fail with all errors in them."""
    if spec == TablesSpec():
        return shipped
    reader = _RowReader(problems)
    tables = msgspec.structs.replace(
        shipped,
        releases=reader.rows(("tables", "releases"), spec.releases, shipped.releases, Release),
        pythons=reader.rows(("tables", "pythons"), spec.pythons, shipped.pythons, Python),
        trees=reader.rows(("tables", "trees"), spec.trees, shipped.trees, SourceTree),
        builds=reader.rows(("tables", "builds"), spec.builds, shipped.builds, BuildPreset),
        compute=reader.computes(spec.compute, shipped.compute),
    )
    if not problems.found:
        for path, what in table_problems(tables):
            problems.add(("tables", *path), what, at_key=True)
    if problems.found:
        raise ConfigError.of(problems.found)
    return tables


class _RowReader:
    """Reads the rows of a file, and collects problems."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems

    def rows(
        self, path: Path, given: RowsSpec, shipped: Mapping[str, Row], kind: type[Row]
    ) -> dict[str, Row]:
        """Return all rows of a table, shipped ones first."""
        found = dict(shipped)
        for name, row in given.items():
            merged = self._row((*path, name), row, shipped.get(name), kind)
            if merged is not None:
                found[name] = merged
        return found

    def computes(self, given: RowsSpec, shipped: Mapping[str, Compute]) -> dict[str, Compute]:
        """Return all rows of the compute platforms' tables, each read by its platform."""
        found = dict(shipped)
        for name, row in given.items():
            path: Path = ("tables", "compute", name)
            platform = platform_for(name)
            if not platform.name:
                titles = ", ".join(platform.title for platform in compute_platforms())
                what = f"no compute platform has a version called `{name}`"
                hint = f"write it as in cu130 or rocm7.2; the platforms are {titles} and plug-ins"
                self.problems.add(path, what, hint, at_key=True)
                continue
            table = platform.table()
            merged = self._row(path, row, table.rows.get(name), platform.row_type)
            if merged is None:
                continue
            for what in platform.problems({name: merged}):
                self.problems.add(path, what, at_key=True)
            found[name] = platform.compute_of(merged, table.source)
        return found

    def _row(
        self, path: Path, given: dict[str, object], shipped: Row | None, kind: type[Row]
    ) -> Row | None:
        """Return a row of the file over the shipped one, or None if it is invalid."""
        merged = _over(given, msgspec.to_builtins(shipped) if shipped else {})
        try:
            return msgspec.convert(merged, kind)
        except msgspec.ValidationError:
            self.problems.found += diagnose(self.problems.document, merged, kind, path)
            return None


def _over(given: object, shipped: object) -> object:
    """Return the given value over the shipped one; merge tables key by key."""
    if not isinstance(given, dict) or not isinstance(shipped, dict):
        return given
    return {**shipped, **{key: _over(value, shipped.get(key)) for key, value in given.items()}}
