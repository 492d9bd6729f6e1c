"""`torchyard check`: check packages against rules."""

import gc
from pathlib import Path

import click

from torchyard.app.check import check_packages, refuse_errors
from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import json_option, policy_option
from torchyard.terminal.console import show, write
from torchyard.terminal.progress import ProgressLine


@in_section(HelpSection.VERIFY)
@click.command("check")
@click.argument("packages", nargs=-1, required=True, type=click.Path(path_type=Path))
@policy_option
@click.option(
    "--rule",
    "globs",
    multiple=True,
    metavar="GLOB",
    help="Check only these rules, also if they are off; `torchyard explain rule` lists them.",
)
@click.option("--html", metavar="FILE", help="Write a page with diagrams, too.")
@json_option
def command(
    *,
    packages: tuple[Path, ...],
    policy_name: str,
    globs: tuple[str, ...],
    html: str | None,
    as_json: bool,
) -> None:
    """Report what is wrong with wheels, conda packages and zips.

    Packages that are named together are checked together: one may have what another needs.
    """
    from torchyard.terminal.json_output import encode

    gc.disable()  # packages have many members, and none of them is garbage
    document = check_packages(
        packages, policy=policy_name, rules=globs, html=html, digests=as_json, meter=ProgressLine
    )
    if as_json:
        write(encode(document))
    else:
        from torchyard.reports.check.text import check_report

        show(check_report(document))
    refuse_errors(document)
