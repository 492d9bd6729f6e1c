"""Partial cells, as written in several tables of `torchyard.toml`."""

from typing import Annotated

from msgspec import Meta

from torchyard.model.values import Value

Globs = str | list[str]


class CellSpec(Value, kw_only=True):
    """A partial cell: a glob or a list of globs for each dimension; omitted ones match all."""

    platform: Annotated[Globs | None, Meta(description="Globs over platforms.")] = None
    compute: Annotated[Globs | None, Meta(description="Globs over compute platforms.")] = None
    blas: Annotated[Globs | None, Meta(description="Globs over BLAS (recipe pytorch).")] = None
    torch: Annotated[Globs | None, Meta(description="Globs over torch (recipe extension).")] = None
    variant: Annotated[
        Globs | None, Meta(description="Globs over variants of a conda recipe (recipe conda).")
    ] = None
    python: Annotated[Globs | None, Meta(description="Globs over Pythons.")] = None
    package: Annotated[Globs | None, Meta(description="Globs over package kinds.")] = None
