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
    """Show the builds that go on, or else the last one: what runs, how long, and what is left.

    With --json, all their events so far are printed.
    """
    folder = Path(home_of(file), "builds")
    builds = sorted(folder.glob("*/events.jsonl"), key=lambda path: path.stat().st_mtime)
    if not builds:
        msg = f"nothing was built yet beside `{file}`"
        raise SelectionError(msg, hint="`torchyard build` builds; -f names another file")
    running = [path for path in builds if _is_going_on(path)] or builds[-1:]
    if as_json:
        for path in running:
            write(path.read_bytes())
        return
    from torchyard.report.board import Board, Picture

    for path in running:
        board = Board()
        for line in path.read_bytes().splitlines():
            board(decode_event(line))
        alive = _is_going_on(path)
        since = time.time() - path.stat().st_mtime if alive else 0.0
        show(Picture(board, board.now + max(0.0, since)))
        if not alive and not board.finished:
            write("its process is gone: the same `torchyard build` goes on from there\n")


def _is_going_on(path: Path) -> bool:
    """Whether the process that writes a build's events is there, and has not told of their end."""
    pid = path.parent.name.rpartition("-")[2]
    return (
        pid.isdigit()
        and is_running(int(pid))
        and b'"event":"finished"' not in path.read_bytes()[-1000:]
    )
