"""What tells symbols of torch from others: `data/compat.toml`."""

import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property

from torchyard.host.files import read_data
from torchyard.model.matrix import any_match
from torchyard.model.values import Value
from torchyard.package.policy import ImportedRow, load_layouts
from torchyard.package.tables import parse_table

TORCH = "torch"


class CompatTable(Value, kw_only=True, dict=True):
    """The whole table."""

    torch: tuple[str, ...]
    others: tuple[str, ...]
    releases: int

    @cached_property
    def _torch(self) -> re.Pattern[str]:
        return re.compile("|".join(self.torch))

    @cached_property
    def _others(self) -> re.Pattern[str]:
        return re.compile("|".join(self.others))

    def is_torchs(self, symbol: str) -> bool:
        """Return whether a symbol can only be torch's."""
        return self._torch.fullmatch(symbol) is not None

    def is_others(self, symbol: str) -> bool:
        """Return whether a symbol is provided by others, even if a torch exports it too."""
        return self._others.fullmatch(symbol) is not None


@cache
def load_compat_table() -> CompatTable:
    """Read the table and check it."""
    return parse_table("compat.toml", read_data("compat.toml"), CompatTable, _problems)


def _problems(table: CompatTable) -> Iterator[str]:
    for pattern in (*table.torch, *table.others):
        try:
            re.compile(pattern)
        except re.error as error:
            yield f"has a pattern that is none: {pattern}: {error}"
    if table.releases < 1:
        yield "compares no releases"


@cache
def torch_row() -> ImportedRow:
    """Return where torch's libraries are, and their names."""
    return next(row for row in load_layouts().imported if row.distribution == TORCH)


def torch_libraries(names: Iterable[str]) -> list[str]:
    """Return those of some members, or names of libraries, that are torch's libraries."""
    row = torch_row()
    return [
        name
        for name in names
        if name.rpartition("/")[0] in ("", row.folder)
        and any_match(name.rpartition("/")[2], row.libraries)
    ]
