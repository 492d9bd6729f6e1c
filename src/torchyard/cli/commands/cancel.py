"""`torchyard cancel`: end a job that runs detached."""

import click

from torchyard.cli.options import file_option, names_argument, set_option, work_option
from torchyard.run.detached import end_detached
from torchyard.run.workdir import WorkDir
from torchyard.terminal.console import say
from torchyard.workspace.run import find_job_spec, job_conditions


@click.command("cancel")
@names_argument("job", required=False)
@click.option("--order", metavar="FILE", help="Take the job from a file that an engine wrote.")
@file_option
@set_option
@work_option
def command(
    *, job: str | None, order: str | None, file: str, changes: tuple[str, ...], work: str | None
) -> None:
    """End a job that `torchyard run --detach` started on this machine, and all its processes.

    Commands that follow it end with exit code 143. Its directory stays: the next run continues
    after the last step that succeeded. Nothing is done if it does not run.
    """
    asked, _ = find_job_spec(job, order, file, changes)
    place = WorkDir(job_conditions(asked, file, work, None).work, asked)
    if end_detached(place):
        say(f"{asked.task.id} was stopped; its directory is {place.folder}")
    else:
        say(f"{asked.task.id} does not run detached in {place.folder.parent}")
