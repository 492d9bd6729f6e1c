"""The selected cells, without making a plan: scripts list them often."""

from torchyard.config.load import load_config
from torchyard.plan.expand import expand
from torchyard.plan.select import PlanSelection, ReadSelection, warnings
from torchyard.terminal.console import say, write


def list_cells(
    file: str,
    changes: tuple[str, ...],
    subset: str | None,
    select: tuple[str, ...],
    skip: tuple[str, ...],
) -> None:
    """Print the identifiers of the cells, one on each line."""
    config = load_config(file, changes)
    expansion = expand(config)
    cells = ReadSelection(expansion, PlanSelection(subset, select, skip)).cells()
    write("".join(f"{config.project.label}/{cell.path}\n" for cell in cells))
    for warning in warnings(expansion):
        say(f"warning: {warning}")
