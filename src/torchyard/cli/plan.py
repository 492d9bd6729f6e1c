"""`torchyard plan`: what would be built."""

from collections.abc import Mapping
from typing import ClassVar

import click

from torchyard.cli.main import LazyGroup
from torchyard.cli.options import (
    file_option,
    json_option,
    select_option,
    set_option,
    skip_option,
    subset_option,
)
from torchyard.config.load import load_yard
from torchyard.config.tables import load_tables
from torchyard.errors import UsageError
from torchyard.model.yard import Yard
from torchyard.plan.expand import expand
from torchyard.plan.select import Selection, select_cells
from torchyard.report.console import show, warn, write


class _PlanCommands(LazyGroup):
    lazy: ClassVar[Mapping[str, str]] = {"diff": "plan_diff"}


@click.group("plan", cls=_PlanCommands, invoke_without_command=True)
@file_option
@set_option
@subset_option
@select_option
@skip_option
@json_option
@click.option("--identifiers", is_flag=True, help="Print the cells, one on each line.")
@click.option(
    "--diagram",
    type=click.Choice(["mermaid", "dot", "svg"]),
    help="Draw the plan, with what repeats folded together.",
)
@click.pass_context
def command(
    ctx: click.Context,
    *,
    file: str,
    changes: tuple[str, ...],
    subset: str | None,
    select: tuple[str, ...],
    skip: tuple[str, ...],
    as_json: bool,
    identifiers: bool,
    diagram: str | None,
) -> None:
    """Show which packages the file asks for, and the jobs that make them.

    Nothing is built. The same file gives the same plan, byte for byte, on every machine.
    """
    if ctx.invoked_subcommand:
        return
    if as_json + identifiers + bool(diagram) > 1:
        msg = "--json, --identifiers and --diagram can't be had together"
        raise UsageError(msg, hint="choose one form of output")
    selection = Selection(subset, select, skip)
    yard = load_yard(file, changes)
    if identifiers:
        cells = select_cells(expand(yard, load_tables()), selection)
        write("".join(f"{yard.project.label}/{cell.path}\n" for cell in cells))
    else:
        _print(yard, selection, diagram, as_json=as_json)


def _print(yard: Yard, selection: Selection, diagram: str | None, *, as_json: bool) -> None:
    from torchyard.plan.build import make_plan

    plan = make_plan(yard, load_tables(), selection)
    if as_json:
        from torchyard.inspect.documents import encode, plan_document

        write(encode(plan_document(plan)))
    elif diagram:
        from torchyard.inspect.diagram import DIAGRAMS
        from torchyard.inspect.fold import fold

        write(DIAGRAMS[diagram](fold(plan)))
    else:
        from torchyard.inspect.tables import plan_report

        show(plan_report(plan))
    warn(plan.warnings)
