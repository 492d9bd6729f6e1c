"""`torchyard why`: why a job or a file was built again."""

import click

from torchyard.cli.options import file_option, json_option, names_argument, store_option
from torchyard.terminal.console import show, write


@click.command("why")
@names_argument("what", required=False, metavar="[JOB|FILE]")
@file_option
@store_option
@json_option
def command(*, what: str | None, file: str, store_url: str | None, as_json: bool) -> None:
    """Say in one sentence why a job or a file was built again, or will be.

    JOB is a job that runs or failed, by default the last one, or whose result is in the store: it
    is compared with the result before. FILE is a file that ninja makes in a build directory.
    """
    from torchyard.app.why import explain_rebuild
    from torchyard.reports.document import encode
    from torchyard.reports.tables import indented

    document = explain_rebuild(what, file=file, store=store_url)
    if as_json:
        write(encode(document))
    else:
        show(indented(document.sentence, 0))
