"""`torchyard run cancel`: end a detached job."""

import click

from torchyard.cli.options import (
    file_option,
    names_argument,
    set_option,
    spec_option,
    work_option,
)
from torchyard.cli.output import calls


@click.command("cancel")
@names_argument("job", required=False)
@spec_option
@file_option
@set_option
@work_option
@calls("cancel_job")
def command() -> None:
    """End a job that `torchyard run --detach` started here.

    All its processes end. Commands that follow it exit with code 143. Its directory stays: the next
    run continues after the last successful step. Nothing is done if it does not run.
    """
