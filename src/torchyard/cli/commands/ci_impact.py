"""`torchyard ci impact`: what a change affects."""

from pathlib import Path

import click

from torchyard.cli.options import file_option, json_option, subset_option
from torchyard.cli.output import show_document
from torchyard.errors import UsageError
from torchyard.host.files import write_text
from torchyard.terminal.console import talk, write


@click.command("impact")
@click.argument("span", metavar="BASE..[HEAD]")
@file_option
@subset_option
@click.option("--provider", help="Print what this provider reads, to run only those jobs.")
@click.option("--pipeline", metavar="NAME", help="Pipeline whose jobs these are.")
@click.option("-o", "--output", metavar="FILE", help="Write that to a file.")
@json_option
def command(
    *,
    span: str,
    file: str,
    subset: str | None,
    provider: str | None,
    pipeline: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Show which jobs of the plan a change of the repository affects, by their fingerprints.

    Both commits are planned with all their files, also those of a source directory. All other jobs
    have the results that they had at BASE.

    Generated files use --provider and --pipeline: then the jobs are those of the provider that run
    affected jobs, and those that make what these need. Without BASE, they are all.
    """
    from torchyard.app.ci_impact import find_impact, select_affected
    from torchyard.reports.ci.text import ci_impact_report

    if (provider is None) != (pipeline is None):
        msg = "--provider and --pipeline go together"
        raise UsageError(msg)
    if provider is not None and pipeline is not None:
        text = select_affected(file, span, provider=provider, pipeline=pipeline, say=talk)
        if output is None:
            write(text)
        else:
            Path(output).parent.mkdir(parents=True, exist_ok=True)
            write_text(output, text, replace=True)
        return
    document = find_impact(file, span, subset=subset)
    show_document(document, ci_impact_report, as_json=as_json)
