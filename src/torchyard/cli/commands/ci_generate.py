"""`torchyard ci generate`: write the files of CI providers."""

import click

from torchyard.cli.options import file_option, json_option, set_option, subset_option
from torchyard.terminal.console import show, warn, write


@click.command("generate")
@click.argument("providers", nargs=-1, metavar="[PROVIDER]...")
@file_option
@set_option
@subset_option
@click.option("--force", is_flag=True, help="Overwrite edits, and files of others.")
@json_option
def command(
    *,
    providers: tuple[str, ...],
    file: str,
    changes: tuple[str, ...],
    subset: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write the files of PROVIDER: github, gitlab, circleci or azure.

    Without one, those of [ci], or of the providers that the repository has files for. With
    --subset, only the pipelines that build it. What no machine of the provider can build is left
    out, and named with the reason. Commit the files: `torchyard ci check` compares them.
    """
    from torchyard.app.ci import CiWriter
    from torchyard.reports.ci.document import ci_files_document
    from torchyard.reports.ci.text import ci_files_report
    from torchyard.terminal.json_output import encode

    files = CiWriter.of(file, providers, changes).write(
        subset, force=force, say=lambda text: warn([text])
    )
    if as_json:
        write(encode(ci_files_document(files)))
    else:
        show(ci_files_report(files, written=True))
