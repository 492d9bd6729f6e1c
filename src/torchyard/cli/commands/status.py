"""`torchyard status`: the progress of a build, from another terminal."""

import time
from contextlib import suppress
from pathlib import Path

import click

from torchyard.app.locations import EVENTS, home_directory
from torchyard.cli.options import file_option, json_option
from torchyard.errors import SelectionError
from torchyard.host.detached import RunRecord, find_record
from torchyard.model.event import decode_event
from torchyard.model.values import UNDECODABLE
from torchyard.terminal.console import show, write


@click.command("status")
@file_option
@json_option
def command(*, file: str, as_json: bool) -> None:
    """Show the builds that run, or else the last one: running jobs, times, and what is left.

    With --json, all their events so far are printed.
    """
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
