"""Completion of cells and jobs in shells."""

import os
from collections.abc import Iterator
from contextlib import suppress

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    split_arg_string,
)

from torchyard.errors import TorchyardError


def complete_names(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Return the values, cells and jobs of the file that start with a word."""
    found: list[str] = []
    with suppress(TorchyardError, OSError):
        found = [name for name in _names(ctx.params["file"]) if name.startswith(incomplete)]
    longer = {sign for sign in "/:" if sign not in incomplete}
    few = dict.fromkeys(name for name in found if longer.isdisjoint(name)) or found
    return [*map(CompletionItem, few)] or [CompletionItem(incomplete, type="file")]


def _names(file: str) -> Iterator[str]:
    from torchyard.config.load import load_config
    from torchyard.plan.build import make_plan

    plan = make_plan(load_config(file))
    cells, start = list(plan.cells()), f"{plan.label}/"
    yield from dict.fromkeys(value for cell in cells for value in (*cell, "-".join(cell[1:3])))
    yield from plan.stage_counts()
    for name in (*(start + cell.path for cell in cells), *(job.identifier for job in plan.jobs)):
        yield from (name, name.replace(start, ""))
    yield from (cell.path.partition("/")[2] for cell in cells)


@add_completion_class
class _Bash(BashComplete):
    """Bash splits words at `:`, and replaces only what follows the last one."""

    def get_completion_args(self) -> tuple[list[str], str]:
        last = int(os.environ["COMP_CWORD"])
        words = [*split_arg_string(os.environ["COMP_WORDS"]), ""][1 : last + 1]
        joined = "\n".join(words).replace("\n:\n", ":").replace("\n:", ":").split("\n")
        self._kept = joined[-1].rfind(":") + 1
        return joined[:-1], joined[-1]

    def format_completion(self, item: CompletionItem[str]) -> str:
        return f"{item.type},{item.value[self._kept :]}"
