"""`torchyard history`: figures of jobs from run to run."""

from pathlib import Path

import click

from torchyard.cli.options import file_option, json_option, names_argument, store_option
from torchyard.cli.output import show_document
from torchyard.terminal.console import say


@click.command("history")
@names_argument("selectors", nargs=-1, metavar="[SELECTOR]...")
@file_option
@store_option
@click.option(
    "--between",
    nargs=2,
    metavar="RUN RUN",
    help="Compare two runs of a job, by release or fingerprint: bytes for each SM, and the rest.",
)
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page.")
@json_option
def command(
    *,
    selectors: tuple[str, ...],
    file: str,
    store_url: str | None,
    between: tuple[str, str] | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Show how time, sizes, symbols and findings of jobs changed from run to run.

    SELECTOR names jobs, such as check:*. Every result in the store is a run, and of results that
    `store gc` has removed the figures are still there.
    """
    from torchyard.app.history import follow_history
    from torchyard.reports.history.page import trends_page
    from torchyard.reports.history.text import history_report

    document = follow_history(selectors, between=between, file=file, store=store_url)
    if html:
        html.write_text(trends_page(document), encoding="utf-8")
        say(f"wrote {html}")
    show_document(document, history_report, as_json=as_json)
