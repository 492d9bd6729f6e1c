"""`torchyard ci check`: are the files of CI providers what would be generated?"""

import click

from torchyard.cli.options import file_option, json_option
from torchyard.terminal.console import show, write


@click.command("check")
@click.argument("providers", nargs=-1, metavar="[PROVIDER]...")
@file_option
@json_option
def command(*, providers: tuple[str, ...], file: str, as_json: bool) -> None:
    """Fail if a generated file was edited, or is older than the matrix or torchyard.

    It shows the difference, and the command that mends it.
    """
    from torchyard.app.ci import CiWriter, refuse_drift
    from torchyard.reports.ci.document import ci_files_document
    from torchyard.reports.ci.text import ci_files_report
    from torchyard.terminal.json_output import encode

    files = CiWriter.of(file, providers).compare()
    if as_json:
        write(encode(ci_files_document(files)))
    else:
        show(ci_files_report(files, written=False))
    refuse_drift(files, file)
