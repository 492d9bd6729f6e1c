"""`torchyard run`: one job, from its inputs to its result."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import get_args

import click
import msgspec

from torchyard.app.locations import absolute, cache_of, copies_of, home_of, open_store
from torchyard.app.redact import redacting
from torchyard.app.toolchain_id import with_toolchain_id
from torchyard.cli.options import (
    copies_option,
    file_option,
    json_option,
    sandbox_option,
    set_option,
    store_option,
    work_option,
)
from torchyard.config.credentials import take_credentials
from torchyard.errors import StoreError, TorchyardError, UsageError
from torchyard.host.secrets import give
from torchyard.host.signals import end_tidily
from torchyard.model.config import Config, Sandbox, SandboxKind
from torchyard.model.event import AnyEvent, Ended, Event, encode_event, ended_well
from torchyard.model.job_spec import JobSpec
from torchyard.run.job import Conditions, run_job
from torchyard.run.permissions import STAGES, parse_stages, refuse_others
from torchyard.store.store import Store
from torchyard.terminal.console import say
from torchyard.terminal.events import printer


@click.command("run")
@click.argument("job", required=False)
@click.option("--order", metavar="FILE", help="Take the job from a file that an engine wrote.")
@file_option
@set_option
@store_option
@work_option
@sandbox_option
@click.option("--slots", metavar="FIFO", help="Take compile slots from this GNU jobserver.")
@click.option("--cache", metavar="URL", help="Compile cache of jobs that use one.")
@copies_option
@click.option("--wait/--no-wait", default=True, help="Wait for another process on the same job.")
@click.option("--keep", is_flag=True, help="Keep the work directory of a job that ended well.")
@click.option("--detach", is_flag=True, help="Let it outlive this command, which only follows it.")
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

    Nothing is done if the store has the result. A job that failed goes on behind the last step
    that ended well. With --json, events are printed, one on each line.

    With --detach, the job goes on if this command is killed; the same command then follows it
    again, from its beginning, and ends as it does. `torchyard cancel` ends the job.
    """
    end_tidily()
    take_credentials()
    if secrets:
        give(msgspec.json.decode(sys.stdin.buffer.read(), type=dict[str, str]))
    asked, config = find_order(job, order, file, changes)
    if stages is not None:
        refuse_others(asked.task, parse_stages(stages))
    conditions = conditions_of(asked, file, work, sandbox)._replace(
        slots=slots,
        wait=wait,
        keep=keep,
        cache=cache or cache_of(file, config),
        copies=copies_of(config) if copies is None else copies,
    )
    store = open_store(store_url, file, config)
    if detach:
        from torchyard.cli.detached import follow_job, write_event

        listen = redacting(write_event if as_json else printer(say))
        follow_job(asked, store, conditions, listen)
    else:
        carry_out(asked, store, conditions, redacting(print_event if as_json else printer(say)))


def carry_out(
    order: JobSpec, store: Store, conditions: Conditions, listen: Callable[[AnyEvent], None]
) -> None:
    """Run a job in this process, and tell how it ended."""
    task = order.task
    ended = partial(Ended, job=task.id, fingerprint=task.fingerprint)
    try:
        outcome = run_job(order, store, conditions, listen)
    except TorchyardError as error:
        known = "; ".join(told.what for told in error.diagnostics[1:])
        failed = partial(ended, outcome="failed", code=error.exit_code, reason=error.reason)
        listen(failed(why=str(error), known=known))
        raise
    listen(ended_well(outcome.result, built=outcome.built))


def conditions_of(order: JobSpec, file: str, work: str | None, sandbox: str | None) -> Conditions:
    """Where a job is run, and in what."""
    kinds: dict[str | None, SandboxKind] = {kind: kind for kind in get_args(SandboxKind)}
    kind = kinds.get(sandbox, order.sandbox.kind)
    root = order.sandbox.root and str(Path(absolute(file)).parent / order.sandbox.root)
    return Conditions(
        work=Path(absolute(work or f"{home_of(file)}/work")),
        file=absolute(file),
        sandbox=Sandbox(kind=kind, root=root),
    )


def find_order(
    job: str | None, order: str | None, file: str, changes: tuple[str, ...]
) -> tuple[JobSpec, Config | None]:
    """The job to run: from a file that spells it out, or from the plan."""
    if (job is None) == (order is None):
        msg = "which job?" if job is None else "a job by its name, or by --order, not both"
        raise UsageError(msg, hint="name one, as `torchyard plan --jobs` lists them")
    if order is not None:
        try:
            return msgspec.json.decode(Path(order).read_bytes(), type=JobSpec), None
        except msgspec.DecodeError as error:
            msg = f"`{order}` is no order: {error}"
            raise StoreError(msg) from error
    from torchyard.config.load import load_config
    from torchyard.config.tables import load_tables
    from torchyard.model.identifier import parse
    from torchyard.plan.build import make_plan_with
    from torchyard.plan.order import order_of

    parsed = parse(job or "")
    if parsed.stage is None:
        msg = f"`{job}` is a cell, which several jobs work for"
        raise UsageError(msg, hint=f"name one of them, such as package:{job}")
    config = with_toolchain_id(load_config(file, changes), file)
    plan = make_plan_with(config, load_tables(), parsed)
    return order_of(plan, plan.find(parsed.stage, parsed.path)), config


def print_event(event: Event) -> None:
    """Tell an engine; should it be gone, the job goes on all the same."""
    with suppress(OSError):
        os.write(sys.stdout.fileno(), encode_event(event))
