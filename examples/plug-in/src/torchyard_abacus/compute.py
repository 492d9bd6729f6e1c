"""A compute platform: packages for it are labelled `+abacus1`."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from torchyard.compute.platform import ComputePlatform, MachineFact, Support
from torchyard.compute.table import ComputeRow, ComputeTable, parse_compute_table


@cache
def _table() -> ComputeTable[ComputeRow]:
    text = (files("torchyard_abacus") / "abacus.toml").read_text(encoding="utf-8")
    return parse_compute_table(text, ComputeRow, "torchyard_abacus/abacus.toml")


class Abacus(ComputePlatform):
    """Wood and wire."""

    name = "abacus"
    title = "Abacus"
    label = r"abacus\d+"
    arch = r"bead\d+"
    arch_hint = "bead10 for Abacus"
    facts: tuple[MachineFact, ...] = (
        MachineFact(option="abacus", title="Abacus", help="For a desk with this abacus."),
    )

    def table(self) -> ComputeTable[ComputeRow]:
        """Return the table, read once."""
        return _table()

    def version(self, compute: str) -> str:
        """Return `1` of abacus1."""
        return compute.removeprefix("abacus")

    def support(self, compute: str, facts: Mapping[str, str], _platform: str) -> Support | str:
        """Return that a package runs if the desk has the same abacus."""
        if facts.get("abacus") == self.version(compute):
            return Support(2, (int(self.version(compute)),))
        return f"is for {compute}: no such abacus is here"


platform: ComputePlatform = Abacus()
