"""`torchyard ci refresh`: new releases of torch and Python in the matrix."""

import click

from torchyard.cli.options import file_option, json_option
from torchyard.terminal.console import show, talk, write
from torchyard.terminal.progress import ProgressLine


@click.command("refresh")
@file_option
@click.option("--write", "is_written", is_flag=True, help="Edit the file, and lock what is new.")
@json_option
def command(*, file: str, is_written: bool, as_json: bool) -> None:
    """Ask the index which torch releases there are, and show what the matrix should be.

    [ci.refresh] in the file says how many of the newest to build for. The packages that appear are
    all that has to be built: others keep their fingerprints.
    """
    from torchyard.app.ci_refresh import refresh_matrix
    from torchyard.reports.plan.document import diff_document
    from torchyard.reports.plan.text import diff_report
    from torchyard.terminal.console import say
    from torchyard.terminal.json_output import encode

    found = refresh_matrix(file, write=is_written, meter=ProgressLine, say=say)
    for dimension, (_, new) in found.changes.items():
        talk(f"{'wrote' if is_written else 'the matrix should have'} {dimension} = {list(new)}")
    if not found.changes:
        talk("the matrix is up to date")
    if found.diff is None:
        talk("hint: a release is new to torchyard: `--write` describes it by its wheels, and plans")
    elif as_json:
        write(encode(diff_document(found.diff)))
    elif found.changes:
        show(diff_report(found.diff))
