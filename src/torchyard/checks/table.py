"""Patterns of the rules about archives and tags: `data/rules.toml`."""

from collections.abc import Iterator
from functools import cache
from typing import Literal

from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.matrix import any_match
from torchyard.model.quantity import parse_size
from torchyard.model.values import Value
from torchyard.package.contents import Contents


class PlatformPrograms(Value, kw_only=True):
    """The format and the machines of a platform's programs; `any` has none."""

    tags: tuple[str, ...]
    format: Literal["", "elf", "mach-o", "pe"] = ""
    machines: tuple[str, ...] = ()


class RuleTable(Value, kw_only=True):
    """The whole table."""

    build_roots: tuple[str, ...]
    build_texts: tuple[str, ...]
    config_texts: tuple[str, ...]
    stray_folders: tuple[str, ...]
    stray_files: tuple[str, ...]
    duplicate_least: str
    bundled: tuple[str, ...]
    libtorch: tuple[str, ...]
    devices: tuple[str, ...]
    launchers: tuple[str, ...]
    parts: dict[str, str]
    blas: dict[str, str]
    platforms: tuple[PlatformPrograms, ...]

    def platform(self, tag: str) -> PlatformPrograms | None:
        """The row of a platform tag, or of a conda subdir."""
        return next((row for row in self.platforms if any_match(tag, row.tags)), None)

    def bundled_in(self, contents: Contents) -> list[str]:
        """Return the members of a package that are third-party libraries."""
        files = contents.files.items()
        return [name for name, file in files if file.binary and any_match(name, self.bundled)]


@cache
def load_rule_table() -> RuleTable:
    """Read the table and check it."""
    return parse_rule_table(read_data("rules.toml"))


def parse_rule_table(text: str) -> RuleTable:
    """Read the text of the table."""
    return parse_table("rules.toml", text, RuleTable, _problems)


def _problems(table: RuleTable) -> Iterator[str]:
    for root in table.build_roots:
        if not root.startswith(("/", "?:/")) or root.endswith("/"):
            yield f"has a root that is not an absolute path: {root}"
    try:
        parse_size(table.duplicate_least)
    except ValueError as error:
        yield f"has an invalid size of duplicates: {error}"
    for row in table.platforms:
        if bool(row.format) != bool(row.machines):
            yield f"has a format without machines, or machines without one, for {row.tags}"
