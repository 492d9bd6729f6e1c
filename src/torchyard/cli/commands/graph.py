"""`torchyard graph`: what a build or a package consists of, and what is linked with what."""

import click

from torchyard.cli.options import build_argument, file_option, store_option
from torchyard.terminal.console import show, write


@click.command("graph")
@build_argument
@file_option
@store_option
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json", "svg", "html", "dot")),
    default="text",
    show_default=True,
    help="How to write it.",
)
@click.option(
    "--focus", default="", metavar="TARGET", help="Show a target or library and its neighbours."
)
@click.option(
    "--why",
    nargs=2,
    metavar="A B",
    help="Show the chain by which A needs B, and the symbols that carry it.",
)
@click.option(
    "--against",
    default="",
    metavar="PACKAGE",
    help="Compare what the build links with what a package of it has.",
)
def command(
    *,
    what: str | None,
    file: str,
    store_url: str | None,
    form: str,
    focus: str,
    why: tuple[str, str] | None,
    against: str,
) -> None:
    """Show targets and libraries, and which are linked with which.

    JOB is a job that runs or failed, by default the last one, or whose result is in the store, such
    as core:*; DIRECTORY any directory that ninja built in, PACKAGE a wheel, conda package or
    libtorch zip. In text and pictures, third-party projects, the system's libraries and many
    programs are one node each; JSON has all.
    """
    from torchyard.app.graph import graph_links
    from torchyard.reports.document import encode
    from torchyard.reports.graph.picture import graph_dot, graph_page, graph_svg
    from torchyard.reports.graph.text import chain_report, graph_report

    document = graph_links(what, focus=focus, why=why, against=against, file=file, store=store_url)
    match form:
        case "json":
            write(encode(document))
        case "svg":
            write(graph_svg(document))
        case "html":
            write(graph_page(document))
        case "dot":
            write(graph_dot(document))
        case _:
            show(chain_report(document) if why else graph_report(document))
