"""`torchyard status`: how a build is doing, seen from another terminal."""

import time
from pathlib import Path

import click

from torchyard.cli.options import file_option, json_option
from torchyard.cli.places import home_of
from torchyard.errors import SelectionError
from torchyard.host.process import is_running
from torchyard.model.event import decode_event
from torchyard.report.console import show, write


@click.command("status")
@file_option
@json_option
def command(*, file: str, as_json: bool) -> None:
    """Show the build that was started last: what runs, for how long, and what is left.

    With --json, all its events so far are printed.
    """
    folder = Path(home_of(file), "builds")
    builds = sorted(folder.glob("*/events.jsonl"), key=lambda path: path.stat().st_mtime)
    if not builds:
        msg = f"nothing was built yet beside `{file}`"
        raise SelectionError(msg, hint="`torchyard build` builds; -f names another file")
    data = builds[-1].read_bytes()
    if as_json:
        write(data)
        return
    from torchyard.report.board import Board, Picture

    board = Board()
    for line in data.splitlines():
        board(decode_event(line))
    pid = int(builds[-1].parent.name.rpartition("-")[2])
    alive = is_running(pid)
    since = time.time() - builds[-1].stat().st_mtime if alive else 0.0
    show(Picture(board, board.now + (0 if board.finished else max(0.0, since))))
    if not alive and not board.finished:
        write("its process is gone: the same `torchyard build` goes on from there\n")
