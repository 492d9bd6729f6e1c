"""`torchyard ci impact`: what a change affects."""

import click

from torchyard.cli.options import file_option, json_option, subset_option
from torchyard.terminal.console import show, write


@click.command("impact")
@click.argument("span", metavar="BASE..[HEAD]")
@file_option
@subset_option
@json_option
def command(*, span: str, file: str, subset: str | None, as_json: bool) -> None:
    """Show which jobs of the plan a change of the repository affects, by their fingerprints.

    Both commits are planned with all their files, also those of a source directory. All other jobs
    have the results that they had at BASE.
    """
    from torchyard.app.ci_impact import find_impact
    from torchyard.reports.ci.text import ci_impact_report
    from torchyard.reports.document import encode

    document = find_impact(file, span, subset=subset)
    if as_json:
        write(encode(document))
    else:
        show(ci_impact_report(document))
