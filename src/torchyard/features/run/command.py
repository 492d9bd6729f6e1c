"""`torchyard run`: a single job, from its inputs to its result."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import (
    copies_option,
    file_option,
    json_option,
    names_argument,
    sandbox_option,
    set_option,
    spec_option,
    store_url_option,
    work_option,
)
from torchyard.cli.output import calls


@in_section(HelpSection.BUILD)
@click.command("run")
@names_argument("job", required=False)
@spec_option
@file_option
@set_option
@store_url_option
@work_option
@sandbox_option
@click.option(
    "--jobserver", "slots", metavar="FIFO", help="Take compile slots from this GNU jobserver."
)
@click.option("--cache", metavar="URL", help="Compile cache of jobs that use one.")
@copies_option
@click.option("--wait/--no-wait", default=True, help="Wait for another process on the same job.")
@click.option("--keep", is_flag=True, help="Keep the work directory of a job that succeeded.")
@click.option(
    "--detach", is_flag=True, help="Let the job outlive this command, which only follows it."
)
@click.option("--secrets", is_flag=True, hidden=True, help="Read secrets from standard input.")
@click.option(
    "--stages",
    metavar="STAGES",
    envvar="TORCHYARD_STAGES",
    show_envvar=True,
    help="Refuse jobs of other stages than these, such as publish, or core,bindings.",
)
@json_option
@calls("run_one_job")
def command() -> None:
    """Run a job, and store its result.

    It fetches the job's inputs, and runs its steps, unless the store has the result. A failed job
    continues after its last successful step. With --json, events are printed, one per line.

    With --detach, the job continues if this command is killed; the same command then follows it
    again from the beginning, and exits with its outcome. `torchyard run cancel` ends the job.
    """
