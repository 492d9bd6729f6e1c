"""Rules and values of a file that have no effect, and are probably mistakes."""

from collections.abc import Iterator

from torchyard.errors import SelectionError
from torchyard.plan.expand import Expansion
from torchyard.plan.select import PlanSelection, ReadSelection


def warnings(expansion: Expansion) -> Iterator[str]:
    """Yield a warning for each rule without effect and each value without cells."""
    config = expansion.config
    for rule in config.matrix.exclude:
        if not expansion.effect(rule):
            yield f"the exclusion at {rule.origin} leaves nothing out that is not left out already"
    for inclusion in config.matrix.include:
        if not expansion.effect(inclusion):
            yield f"the inclusion at {inclusion.origin} takes nothing in that is not there already"
    for override in config.overrides:
        if not any(override.pattern.matches(cell) for cell in expansion.cells):
            yield f"the override at {override.origin} reaches no cell"
    for name in config.subsets:
        try:
            ReadSelection(expansion, PlanSelection(name)).cells()
        except SelectionError:
            yield f"the subset `{name}` has no cell ({config.origin(f'subset.{name}')})"
    yield from _unused_values(expansion)


def _unused_values(expansion: Expansion) -> Iterator[str]:
    served = (absent.cell for absent in expansion.absent if absent.absence.server)
    cells = [*expansion.cells, *served]
    for field, dimension in enumerate(expansion.config.project.recipe.dimensions):
        seen = {cell[field] for cell in cells}
        for value in expansion.values[field]:
            if value not in seen:
                yield f"no cell has {dimension} `{value}`"
