"""`torchyard status`: the progress of a build, from another terminal."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click

from torchyard.cli.options import file_option, json_option, names_argument, store_url_option
from torchyard.errors import SelectionError, UsageError
from torchyard.host.detached import RunRecord, find_record
from torchyard.model.event import decode_event
from torchyard.model.values import UNDECODABLE
from torchyard.terminal.console import show, write
from torchyard.workspace.locations import EVENTS, home_directory


@click.command("status")
@names_argument("job", required=False)
@file_option
@store_url_option
@json_option
def command(*, job: str | None, file: str, store_url: str | None, as_json: bool) -> None:
    """Show the builds that run, or else the last one: running jobs, times, and what is left.

    With --json, all their events so far are printed. For a JOB, show its step and the end of its
    log, whether it runs, was interrupted or failed, or when its result was made.
    """
    if job is not None:
        if as_json:
            msg = "--json prints the events of builds, and not the state of a job"
            raise UsageError(msg, hint="`torchyard store show JOB --json` prints a result")
        write("".join(f"{line}\n" for line in _about(job, file, store_url)))
        return
    folder = Path(home_directory(file), "builds")
    found = [record for path in folder.glob(f"*/{EVENTS}") if (record := find_record(path))]
    builds = sorted(found, key=RunRecord.written)
    if not builds:
        msg = f"nothing was built yet beside `{file}`"
        raise SelectionError(msg, hint="`torchyard build` builds; -f names another file")
    for record in [one for one in builds if one.is_running()] or builds[-1:]:
        if as_json:
            write(b"".join(line + b"\n" for line in record.lines()))
        else:
            _show(record)
    for record in builds:
        record.close()


def _show(record: RunRecord) -> None:
    """Show a build from its events so far; an incomplete last line is ignored."""
    from torchyard.terminal.board import Board, BoardView

    board, is_running = Board(), record.is_running()  # asked first, so that its last line is read
    for line in record.lines():
        with suppress(*UNDECODABLE):  # a full disk may have cut it
            board(decode_event(line))
    since = time.time() - record.written() if is_running else 0.0
    show(BoardView(board, board.now + max(0.0, since)))
    if not is_running and not board.finished:
        write("its process is gone: the same `torchyard build` continues it\n")


def _about(job: str, file: str, store_url: str | None) -> Iterator[str]:
    """Yield lines on the state of a job, by its directory or else its result."""
    from torchyard.model.quantity import show_count, show_duration
    from torchyard.recipes import steps_of
    from torchyard.run.log import last_line
    from torchyard.run.workdir import WorkDir
    from torchyard.workspace.left_job import find_left_job
    from torchyard.workspace.locations import open_store, work_directory

    order, config = find_left_job(job, file, None)
    name, steps = order.task.id, steps_of(order)
    place = WorkDir(Path(work_directory(file)), order)
    state = place.state()
    if result := open_store(store_url, file, config).find(order.task.fingerprint):
        took = show_duration(result.seconds)
        yield f"{name} is finished: made in {took} at {result.started}, on {result.machine}"
    elif not place.log.exists():
        yield f"{name} has not run; `torchyard run {name}` runs it"
    else:
        with place.alone(wait=False) as is_idle:
            how = "does not run, and did not finish" if is_idle else "runs"
        done = f"{len(state.steps)} of {show_count(len(steps), 'step')} done"
        yield f"{name} {how}: {done}, {show_duration(state.seconds)} so far"
        yield from (f"step: {step.title}" for step in steps[len(state.steps) :][:1])
        yield f"log: {place.log}, which ends:\n  {last_line(place.log)}"
        more = f"torchyard diagnose {name}; " if is_idle else ""
        yield f"more: {more}torchyard shell {name}"
