"""`torchyard deps`: the versions of third-party dependencies, and which disagree."""

from pathlib import Path

import click

from torchyard.cli.options import file_option, json_option
from torchyard.cli.output import show_document
from torchyard.terminal.console import say


@click.command("deps")
@click.option(
    "--source",
    default=".",
    show_default="here",
    metavar="DIR",
    help="Source tree to read: a clone, or a source that torchyard has fetched.",
)
@file_option
@click.option("--channel", default="", metavar="CHANNEL", help="Compare with its newest torch.")
@click.option("--newest", is_flag=True, help="Ask the package index for the newest versions.")
@click.option(
    "--conda", default="", metavar="ADDRESS", help="Ask a conda channel for its newest versions."
)
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page.")
@click.option(
    "--markdown", type=click.Path(path_type=Path), metavar="FILE", help="Write a Markdown table."
)
@click.option("--check", is_flag=True, help="Exit with 17 if something contradicts the tree.")
@json_option
def command(
    *,
    source: str,
    file: str,
    channel: str,
    newest: bool,
    conda: str,
    html: Path | None,
    markdown: Path | None,
    check: bool,
    as_json: bool,
) -> None:
    """Show the versions of third-party dependencies, and which disagree.

    They are read from a source tree (submodules, version headers, requirements, CI scripts), from
    FILE and torchyard's own tables, from a channel, and from package indexes; each with its line.
    """
    from torchyard.app.deps import compare_dependencies, refuse_version_drift
    from torchyard.reports.deps.page import deps_page
    from torchyard.reports.deps.text import deps_markdown, deps_report

    document = compare_dependencies(source, file=file, channel=channel, newest=newest, conda=conda)
    for path, text in ((html, deps_page), (markdown, deps_markdown)):
        if path:
            path.write_text(text(document), encoding="utf-8")
            say(f"wrote {path}")
    show_document(document, deps_report, as_json=as_json)
    if check:
        refuse_version_drift(document)
