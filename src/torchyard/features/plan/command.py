"""`torchyard plan`: what would be built, and what a change of the file does to that."""

from shlex import quote

import click

from torchyard.cli.lazy_group import HelpSection, LazyGroup, in_section
from torchyard.cli.options import file_option, select_option, set_option, skip_option, subset_option
from torchyard.cli.output import reports
from torchyard.model.suggest import nearest


class _PlanCommands(LazyGroup):
    def hint(self, ctx: click.Context, name: str) -> str | None:
        if nearest(name, self.list_commands(ctx)):
            return super().hint(ctx, name)
        return f"to select cells or jobs: torchyard plan --select {quote(name)}"


@in_section(HelpSection.BUILD)
@click.group("plan", cls=_PlanCommands, invoke_without_command=True)
@file_option
@set_option
@subset_option
@select_option
@skip_option
@click.option("--identifiers", is_flag=True, help="Print the cells, one on each line.")
@click.option("--jobs", is_flag=True, help="Print the jobs, one on each line.")
@click.option(
    "--diagram",
    type=click.Choice(["mermaid", "dot"]),
    help="Draw the plan, with what repeats folded together.",
)
@reports("describe_plan")
def command() -> None:
    """Show the packages that the file asks for, and their jobs.

    Nothing is built. The same file gives the same plan, byte for byte, on every machine; with a
    [toolchain], on every machine that compiles with the same programs.
    """


@command.command("diff")
@click.argument("old")
@click.argument("new")
@file_option
@subset_option
@click.option("--fail-on-vanish", is_flag=True, help="Exit with 8 if a package vanishes.")
@reports("plan_difference")
def plan_diff() -> None:
    """Show which packages appear, vanish or are rebuilt, and why.

    OLD and NEW are files, or git revisions of the file that -f names.
    """
