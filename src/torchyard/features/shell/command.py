"""`torchyard shell`: look around in a job's directory."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import (
    file_option,
    names_argument,
    sandbox_option,
    set_option,
    spec_option,
    store_url_option,
    work_option,
)
from torchyard.cli.output import calls


@in_section(HelpSection.BUILD)
@click.command("shell", context_settings={"ignore_unknown_options": True})
@names_argument("job", required=False)
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@spec_option
@file_option
@set_option
@store_url_option
@work_option
@sandbox_option
@calls("enter_job")
def command() -> None:
    """Enter a job's work directory, environment and sandbox.

    After a failure, everything is as the failed step left it. The result of a finished job is
    restored, with the build directory of a core. The directory of a running job is not changed.
    COMMAND runs instead of a shell. The default JOB is the last one that runs or failed.
    """
