"""The state of a build, from the record of its events."""

import time
from contextlib import suppress

from torchyard.host.detached import RunRecord
from torchyard.model.event import decode_event
from torchyard.model.values import UNDECODABLE
from torchyard.terminal.board import Board, BoardView
from torchyard.terminal.tables import Lines, styled


def status_text(record: RunRecord) -> Lines:
    """Show a build from its events so far; an incomplete last line is ignored."""
    board, is_running = Board(), record.is_running()  # checked first, so that its last line is read
    for line in record.lines():
        with suppress(*UNDECODABLE):  # a full disk may have cut it
            board(decode_event(line))
    since = time.time() - record.written() if is_running else 0.0
    yield BoardView(board, board.now + max(0.0, since))
    if not is_running and not board.finished:
        yield styled("its process is gone: the same `torchyard build` continues it")
