"""`torchyard ci adopt`: edits of a generated workflow as settings."""

import click

from torchyard.cli.options import file_option
from torchyard.errors import DriftError
from torchyard.terminal.console import warn, write


@click.command("adopt")
@click.argument("path", metavar="WORKFLOW")
@file_option
def command(*, path: str, file: str) -> None:
    """Print the settings of [ci] that reproduce the edits of a generated workflow (GitHub).

    They are proven: with them, the same file is generated, byte for byte. Edits that no setting can
    express are named, and the command fails.
    """
    from torchyard.app.ci import adopt_file

    adopted = adopt_file(file, path)
    write(adopted.settings)
    warn(f"these settings change `{other}`, too" for other in adopted.others)
    if adopted.unknown:
        warn(adopted.unknown)
        msg = f"{len(adopted.unknown):,} edits of `{adopted.path}` can't be expressed by settings"
        raise DriftError(msg, hint="make them in a workflow of your own, called by a hook")
    if not adopted.is_reproduced:
        msg = f"these settings give `{adopted.path}` in another spelling, order or with comments"
        raise DriftError(msg, hint="if that is well, use them, and run `torchyard ci generate`")
