"""`torchyard timings`: where the time of a build went."""

from pathlib import Path

import click

from torchyard.cli.options import file_option, json_option, names_argument, store_option
from torchyard.cli.output import show_document
from torchyard.terminal.console import say


@click.command("timings")
@names_argument("what", required=False, metavar="[JOB|DIRECTORY]")
@file_option
@store_option
@click.option(
    "--against", default="", metavar="JOB|DIRECTORY", help="Compare with an earlier build."
)
@click.option(
    "--ratio",
    type=click.FloatRange(min=1, min_open=True),
    default=1.5,
    show_default=True,
    help="How many times as long as in the earlier build is an error.",
)
@click.option(
    "--slots",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="NUMBER",
    help="Numbers of compile slots to simulate; may be repeated.  [default: 1, 2, 4, 16, 64]",
)
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page.")
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a trace for Chrome's about:tracing, or Perfetto.",
)
@json_option
def command(
    *,
    what: str | None,
    file: str,
    store_url: str | None,
    against: str,
    ratio: float,
    slots: tuple[int, ...],
    html: Path | None,
    trace: Path | None,
    as_json: bool,
) -> None:
    """Show where the time of a build went, from what ninja left.

    JOB is a job that runs or failed, by default the last one, or whose result is in the store,
    such as core:*; DIRECTORY any directory that ninja built in. What the build would take with
    other numbers of compile slots is simulated.
    """
    from torchyard.app.timings import SLOTS, measure_build, refuse_slower
    from torchyard.reports.timings.page import timings_page
    from torchyard.reports.timings.text import timings_report
    from torchyard.reports.timings.trace import timings_trace

    document = measure_build(
        what, against=against, ratio=ratio, slots=slots or SLOTS, file=file, store=store_url
    )
    if html:
        html.write_text(timings_page(document), encoding="utf-8")
        say(f"wrote {html}")
    if trace:
        trace.write_bytes(timings_trace(document))
        say(f"wrote {trace}")
    show_document(document, timings_report, as_json=as_json)
    refuse_slower(document)
