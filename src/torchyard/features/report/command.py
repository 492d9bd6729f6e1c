"""`torchyard report`: a plan and its results as a page."""

from pathlib import Path

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import file_option, names_argument, store_option
from torchyard.cli.output import VALUES
from torchyard.terminal.console import say

VALUES["report"] = "torchyard.features.report.report:PlanReport"


@in_section(HelpSection.UNDERSTAND)
@click.command("report")
@names_argument("what", metavar="[PLAN|JOB]", default="")
@file_option
@store_option
@click.option(
    "--source", default="", metavar="DIR", help="Source tree whose dependencies are compared."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="Page to write; its data goes to a .json file beside it.",
)
def command(*, what: str, file: str, store: str | None, source: str, output: Path) -> None:
    """Write one page about a plan: jobs, timeline, graph and sizes.

    PLAN is a configuration, JOB a selector, such as core:*; the default is all of the file. The
    page is self-contained and needs no network.
    """
    from torchyard.features.report.page import report_html
    from torchyard.features.report.use_case import report_plan
    from torchyard.terminal.json_output import encode

    document = report_plan(what, source=source, file=file, store=store)
    data = output.with_suffix(".json")
    output.write_text(report_html(document), encoding="utf-8")
    data.write_bytes(encode(document))
    for path in (output, data):
        say(f"wrote {path}")
