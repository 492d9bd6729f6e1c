"""`torchyard plan`: what would be built."""

from collections.abc import Mapping
from shlex import quote
from typing import ClassVar

import click

from torchyard.cli.lazy_group import LazyGroup, command_modules
from torchyard.cli.options import (
    file_option,
    json_option,
    refuse_options,
    select_option,
    set_option,
    skip_option,
    subset_option,
)
from torchyard.config.load import load_config
from torchyard.errors import UsageError
from torchyard.model.config import Config
from torchyard.model.suggest import nearest
from torchyard.plan.expand import expand
from torchyard.plan.select import PlanSelection, ReadSelection
from torchyard.plan.unused_rules import warnings
from torchyard.terminal.console import show, warn, write
from torchyard.workspace.toolchain_id import with_toolchain_id


class _PlanCommands(LazyGroup):
    lazy: ClassVar[Mapping[str, str]] = command_modules("plan")

    def hint(self, ctx: click.Context, name: str) -> str | None:
        if nearest(name, self.list_commands(ctx)):
            return super().hint(ctx, name)
        return f"to select cells or jobs: torchyard plan --select {quote(name)}"


@click.group("plan", cls=_PlanCommands, invoke_without_command=True)
@file_option
@set_option
@subset_option
@select_option
@skip_option
@json_option
@click.option("--identifiers", is_flag=True, help="Print the cells, one on each line.")
@click.option("--jobs", is_flag=True, help="Print the jobs, one on each line.")
@click.option(
    "--diagram",
    type=click.Choice(["mermaid", "dot"]),
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
    jobs: bool,
    diagram: str | None,
) -> None:
    """Show which packages the file asks for, and the jobs that make them.

    Nothing is built. The same file gives the same plan, byte for byte, on every machine; with a
    [toolchain], on every machine that compiles with the same programs.
    """
    if ctx.invoked_subcommand:
        refuse_options(ctx)
        return
    if as_json + identifiers + jobs + bool(diagram) > 1:
        msg = "--json, --identifiers, --jobs and --diagram can't be had together"
        raise UsageError(msg, hint="choose one form of output")
    selection = PlanSelection(subset, select, skip)
    config = load_config(file, changes)
    if diagram and ReadSelection(expand(config), selection).of_jobs:
        msg = "a diagram shows how packages are made, so it can't be of single jobs"
        raise UsageError(msg, hint="select cells, such as cu130 or linux-x86_64")
    if identifiers:
        expansion = expand(config)
        cells = ReadSelection(expansion, selection).cells()
        write("".join(f"{config.project.label}/{cell.path}\n" for cell in cells))
        warn(warnings(expansion))
    else:
        _print(with_toolchain_id(config, file), selection, diagram, as_json=as_json, jobs=jobs)


def _print(
    config: Config, selection: PlanSelection, diagram: str | None, *, as_json: bool, jobs: bool
) -> None:
    from torchyard.plan.build import make_plan

    plan = make_plan(config, selection)
    if as_json:
        from torchyard.reports.plan.document import plan_json

        for piece in plan_json(plan):
            write(piece)
    elif jobs:
        write("".join(f"{job.identifier}\n" for job in plan.jobs))
    elif diagram:
        from torchyard.reports.plan.diagram import DIAGRAMS
        from torchyard.reports.plan.diagram_model import fold

        write(DIAGRAMS[diagram](fold(plan)))
    else:
        from torchyard.reports.plan.text import plan_report

        show(plan_report(plan))
    warn(plan.warnings)
