"""Things in a file that do nothing, and so are probably not meant."""

from collections.abc import Iterator

from torchyard.errors import SelectionError
from torchyard.plan.expand import OUTER, Expansion
from torchyard.plan.select import Selection, select_blocks


def warnings(expansion: Expansion) -> Iterator[str]:
    """Tell of rules without effect and values without cells."""
    config = expansion.config
    for rule, count in zip(config.matrix.exclude, expansion.left_out, strict=True):
        if not count:
            yield f"the exclusion at {rule.origin} leaves nothing out that is not left out already"
    for inclusion, count in zip(config.matrix.include, expansion.taken_in, strict=True):
        if not count:
            yield f"the inclusion at {inclusion.origin} takes nothing in that is not there already"
    for override in config.overrides:
        matcher = expansion.matcher(override.pattern)
        if not any(matcher.at(block.head) & block.mask for block in expansion.blocks):
            yield f"the override at {override.origin} reaches no cell"
    for name in config.subsets:
        try:
            select_blocks(expansion, Selection(name))
        except SelectionError:
            yield f"the subset `{name}` has no cell ({config.origin(f'subset.{name}')})"
    yield from _idle_values(expansion)


def _idle_values(expansion: Expansion) -> Iterator[str]:
    pairs = {
        pair for mask in {b.mask for b in expansion.blocks} for pair in expansion.pairs_of(mask)
    }
    for field, dimension in enumerate(expansion.config.project.recipe.dimensions):
        if field < OUTER:
            seen = {block.head[field] for block in expansion.blocks}
        else:
            seen = {pair[field - OUTER] for pair in pairs}
        for value in expansion.values[field]:
            if value not in seen:
                yield f"no cell has {dimension} `{value}`"
