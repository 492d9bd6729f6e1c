"""Patterns that distinguish symbols of torch from others: `data/compat.toml`."""

import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property

from torchyard.checks.compat.stable_names import Release, parse_release
from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.matrix import any_match
from torchyard.model.values import Value
from torchyard.package.policy import ImportedRow, load_layouts

TORCH = "torch"


class CompatTable(Value, kw_only=True, dict=True):
    """The whole table."""

    torch: tuple[str, ...]
    shims: tuple[str, ...]
    runtimes: tuple[str, ...]
    openmp: str
    others: tuple[str, ...]
    releases: int
    brings: dict[str, str]

    @cached_property
    def _torch(self) -> re.Pattern[str]:
        return re.compile("|".join((*self.torch, *self.shims)))

    @cached_property
    def _shims(self) -> re.Pattern[str]:
        return re.compile("|".join(self.shims))

    @cached_property
    def _torch_in_block(self) -> re.Pattern[bytes]:
        return re.compile(rb"\0(?:%b)" % "|".join((*self.torch, *self.shims)).encode())

    @cached_property
    def _runtimes(self) -> re.Pattern[str]:
        return re.compile("|".join(self.runtimes))

    @cached_property
    def _others(self) -> re.Pattern[str]:
        return re.compile("|".join(self.others))

    def is_torchs(self, symbol: str) -> bool:
        """Return whether only torch can define a symbol."""
        return self._torch.fullmatch(symbol) is not None

    def may_use_torch(self, names: bytes) -> bool:
        """Return whether a block of zero-terminated names may contain one of torch's."""
        return self._torch_in_block.search(b"\0" + names) is not None

    def is_shim(self, symbol: str) -> bool:
        """Return whether a symbol is one of torch's stable C functions."""
        return self._shims.fullmatch(symbol) is not None

    def toolkit(self, release: Release) -> str:
        """Return the toolkit that the wheels of a torch release on PyPI bring: `CUDA 13`."""
        since = {parse_release(text): name for text, name in self.brings.items()}
        past = [oldest for oldest in since if oldest <= release]
        return since[max(past)] if past else ""

    def is_runtimes(self, symbol: str) -> bool:
        """Return whether a symbol belongs to Python or a compiler's runtime."""
        return self._runtimes.fullmatch(symbol) is not None

    def is_others(self, symbol: str) -> bool:
        """Return whether a symbol is of a library that torch needs, even if it exports a copy."""
        return self._others.fullmatch(symbol) is not None

    def is_openmps(self, symbol: str) -> bool:
        """Return whether a symbol belongs to the OpenMP runtime that every torch needs."""
        return re.fullmatch(self.openmp, symbol) is not None


@cache
def load_compat_table() -> CompatTable:
    """Read the table and check it."""
    return parse_table("compat.toml", read_data("compat.toml"), CompatTable, _problems)


def _problems(table: CompatTable) -> Iterator[str]:
    for pattern in (*table.torch, *table.shims, *table.runtimes, table.openmp, *table.others):
        try:
            re.compile(pattern)
        except re.error as error:
            yield f"has an invalid pattern: {pattern}: {error}"
    for release in table.brings:
        if not re.fullmatch(r"\d+\.\d+", release):
            yield f"has a release that is not a minor version: {release}"
    if table.releases < 1:
        yield "compares no releases"


@cache
def torch_row() -> ImportedRow:
    """Return the folder and names of torch's libraries."""
    return next(row for row in load_layouts().imported if row.distribution == TORCH)


def torch_libraries(names: Iterable[str]) -> list[str]:
    """Return the members, or names of libraries, that are torch's."""
    row = torch_row()
    return [
        name
        for name in names
        if name.rpartition("/")[0] in ("", row.folder)
        and any_match(name.rpartition("/")[2], row.libraries)
    ]
