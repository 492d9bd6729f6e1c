"""`torchyard plan`: what would be built."""

from functools import wraps
from typing import cast

import click
from click.decorators import FC

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import (
    file_option,
    names_argument,
    set_option,
    skip_option,
    subset_option,
)
from torchyard.cli.output import reports


def _lists_cells(function: FC) -> FC:
    """Make a command list selected cells without making a plan, which takes longer."""

    @wraps(function)
    def command(
        *,
        file: str,
        changes: tuple[str, ...],
        subset: str | None,
        select: tuple[str, ...],
        skip: tuple[str, ...],
        listed: str | None,
        **others: object,
    ) -> None:
        if listed == "cells" and not any(others.values()):
            from torchyard.features.plan.cells import list_cells

            list_cells(file, changes, subset, select, skip)
            return
        given = {"file": file, "changes": changes, "subset": subset, "listed": listed}
        function(select=select, skip=skip, **given, **others)

    return cast("FC", command)


@in_section(HelpSection.BUILD)
@click.command("plan")
@names_argument("select", nargs=-1, metavar="[SELECTOR]...")
@file_option
@set_option
@subset_option
@skip_option
@click.option(
    "--list", "listed", type=click.Choice(["cells", "jobs"]), help="Print these, one on each line."
)
@click.option(
    "--diagram",
    type=click.Choice(["mermaid", "dot"]),
    help="Draw the plan, with repetitions folded.",
)
@_lists_cells
@reports("describe_plan")
def command() -> None:
    """Show the packages of the file, and their jobs.

    Nothing is built. The same file gives the same plan, byte for byte, on every machine; with a
    [toolchain], on every machine that compiles with the same programs. `torchyard plan diff OLD
    NEW` compares two plans.
    """
