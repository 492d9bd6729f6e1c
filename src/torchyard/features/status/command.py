"""`torchyard status`: the progress of a build, from another terminal."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import file_option, json_option, names_argument, store_url_option
from torchyard.errors import UsageError
from torchyard.terminal.console import show, write


@in_section(HelpSection.OPERATE)
@click.command("status")
@names_argument("job", required=False)
@file_option
@store_url_option
@json_option
def command(*, job: str | None, file: str, store_url: str | None, as_json: bool) -> None:
    """Show the builds that run, or the last one.

    It lists running jobs, their times, and the remaining work. With --json, it prints all events so
    far. For a JOB, it shows the step, the end of the log, and whether the job runs, was interrupted
    or failed, or when its result was made.
    """
    from torchyard.features.status.report import status_text
    from torchyard.features.status.use_case import job_state, recent_builds

    if job is None:
        for record in recent_builds(file):
            if as_json:
                write(b"".join(line + b"\n" for line in record.lines()))
            else:
                show(*status_text(record))
    elif as_json:
        msg = "--json prints the events of builds, not the state of a job"
        raise UsageError(msg, hint="`torchyard store show JOB --json` prints a result")
    else:
        write("".join(f"{line}\n" for line in job_state(job, file, store_url)))
