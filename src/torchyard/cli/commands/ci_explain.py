"""`torchyard ci explain`: which job of a provider runs which jobs of the plan."""

import click

from torchyard.cli.options import file_option, json_option, names_argument
from torchyard.cli.output import show_document


@click.command("explain")
@names_argument("job")
@click.argument("providers", nargs=-1, metavar="[PROVIDER]...")
@file_option
@json_option
def command(*, job: str, providers: tuple[str, ...], file: str, as_json: bool) -> None:
    """Show where JOB runs: machine, command, what it waits for, and how results get there.

    JOB is a selector of jobs of the plan (core:cu130), or the name of a job in a generated
    file.
    """
    from torchyard.app.ci import CiWriter
    from torchyard.reports.ci.document import ci_explain_document
    from torchyard.reports.ci.text import ci_explain_report

    document = ci_explain_document(CiWriter.of(file, providers).explain(job))
    show_document(document, ci_explain_report, as_json=as_json)
