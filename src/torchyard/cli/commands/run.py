"""`torchyard run`: one job, from its inputs to its result."""

import sys

import click
import msgspec

from torchyard.cli.options import (
    copies_option,
    file_option,
    json_option,
    names_argument,
    sandbox_option,
    set_option,
    store_url_option,
    work_option,
)
from torchyard.config.credentials import take_credentials
from torchyard.host.secrets import give
from torchyard.host.signals import exit_on_sigterm
from torchyard.model.event import AnyEvent, encode_event
from torchyard.run.permissions import STAGES, parse_stages, refuse_other_stages
from torchyard.terminal.console import say, write, write_error
from torchyard.terminal.events import emit_event, printer
from torchyard.workspace.locations import compile_cache_url, copies_limit, open_store
from torchyard.workspace.redact import redacting
from torchyard.workspace.run import execute_job, find_job_spec, job_conditions


@click.command("run")
@names_argument("job", required=False)
@click.option("--order", metavar="FILE", help="Take the job from a file that an engine wrote.")
@file_option
@set_option
@store_url_option
@work_option
@sandbox_option
@click.option("--slots", metavar="FIFO", help="Take compile slots from this GNU jobserver.")
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
    envvar=STAGES,
    show_envvar=True,
    help="Refuse jobs of other stages than these, such as publish, or core,bindings.",
)
@json_option
def command(
    *,
    job: str | None,
    order: str | None,
    file: str,
    changes: tuple[str, ...],
    store_url: str | None,
    work: str | None,
    sandbox: str | None,
    slots: str | None,
    cache: str | None,
    copies: int | None,
    wait: bool,
    keep: bool,
    detach: bool,
    secrets: bool,
    stages: str | None,
    as_json: bool,
) -> None:
    """Run one job: fetch what it needs, run its steps, put its result into the store.

    Nothing is done if the store has the result. A job that failed continues after the last step
    that succeeded. With --json, events are printed, one on each line.

    With --detach, the job continues if this command is killed; the same command then follows it
    again, from its beginning, and ends as it does. `torchyard cancel` ends the job.
    """
    exit_on_sigterm()
    take_credentials()
    if secrets:
        give(msgspec.json.decode(sys.stdin.buffer.read(), type=dict[str, str]))
    asked, config = find_job_spec(job, order, file, changes)
    if stages is not None:
        refuse_other_stages(asked.task, parse_stages(stages))
    conditions = job_conditions(asked, file, work, sandbox)._replace(
        slots=slots,
        wait=wait,
        keep=keep,
        cache=cache or compile_cache_url(file, config),
        copies=copies_limit(config) if copies is None else copies,
    )
    store = open_store(store_url, file, config)
    if detach:
        from torchyard.app.detached import follow_job

        on_event = redacting(_write_event if as_json else printer(say))
        follow_job(asked, store, conditions, on_event=on_event, on_stray=write_error, on_leave=say)
    else:
        execute_job(asked, store, conditions, redacting(emit_event if as_json else printer(say)))


def _write_event(event: AnyEvent) -> None:
    """Write an event to stdout; if the reader is gone, this command exits and the job continues."""
    write(encode_event(event))
