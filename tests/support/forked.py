"""Run `torchyard` in processes that are forked from one which has loaded its modules.

They have their own environment, directory, streams and exit code, as new processes do, for a
third of the CPU. Tests that are about starting, or about signals, start the program itself.
"""

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import NoReturn
from unittest import mock

from torchyard.cli.main import main
from torchyard.host.fork_server import ForkedProcess, ForkServer

TORCHYARD = (sys.executable, "-m", "torchyard")

_PREPARED = (
    *(f"torchyard.features.{name}.use_case" for name in ("check", "plan", "publish", "run")),
    *("torchyard.features.build.command", "torchyard.workspace.build"),
    *("torchyard.engines.builtin.local", "torchyard.plan.build"),
    *("torchyard.cli.build_display", "rich.console"),
)
"""What most commands of tests load."""

_lock = threading.Lock()


def run_torchyard(
    words: Sequence[object], env: Mapping[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `torchyard` with these words, and return its output and exit code."""
    argv = list(map(str, words))
    if any(_starts_otherwise(*variable) for variable in env.items()):
        return subprocess.run(
            [*TORCHYARD, *argv], cwd=cwd, env=env, capture_output=True, text=True, check=False
        )
    request = json.dumps([dict(env), str(cwd or Path.cwd()), ""])
    with Path(os.devnull).open("rb") as nothing, TemporaryFile() as out, TemporaryFile() as err:
        code = _start([request, *argv], [nothing.fileno(), out.fileno(), err.fileno()]).wait()
        texts = [(file.seek(0), file.read().decode())[1] for file in (out, err)]
    return subprocess.CompletedProcess([*TORCHYARD, *argv], code, *texts)


def _start(argv: Sequence[str], streams: Sequence[int]) -> ForkedProcess:
    stdin, stdout, stderr = streams
    with _lock:
        return _server().start(argv, stdin=stdin, stdout=stdout, stderr=stderr)


_STAND_IN = """\
#!{python} -ISE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect({address!r})
    request = json.dumps([dict(os.environ), os.getcwd(), "torchyard"])
    socket.send_fds(server, [json.dumps([request, *sys.argv[1:]]).encode()], [0, 1, 2])
    code = int(server.recv(16) or 1)
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@contextmanager
def forked_program(folder: Path) -> Iterator[Path]:
    """Write a program `torchyard` for shells, which runs its commands in forks.

    They are in sessions of their own, so it is not for commands that a signal ends.
    """
    folder.mkdir()
    program = folder / "torchyard"
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
        TemporaryDirectory(prefix="forked-") as short,  # the names of sockets have 108 bytes
    ):
        address = f"{short}/socket"
        listener.bind(address)
        listener.listen()
        program.write_text(_STAND_IN.format(python=sys.executable, address=address))
        program.chmod(0o755)
        answering = threading.Thread(target=_answer, args=[listener], daemon=True)
        answering.start()
        yield program
        listener.shutdown(socket.SHUT_RDWR)  # lets `accept` return
        answering.join()


def _answer(listener: socket.socket) -> None:
    """Run what each connection asks for; commands of a pipeline run at once."""
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=[connection], daemon=True).start()


def _serve(connection: socket.socket) -> None:
    with connection:
        request, files, _, _ = socket.recv_fds(connection, 1 << 17, 3)
        try:
            process = _start(json.loads(request), files)
        finally:
            for file in files:
                os.close(file)
        with suppress(OSError):  # the shell may be gone
            connection.send(str(process.wait()).encode())


def _starts_otherwise(name: str, text: str) -> bool:
    """Return whether an interpreter with this variable starts otherwise than this one did."""
    is_read = name.startswith("PYTHON") and os.environ.get(name) != text
    return is_read or name.startswith("COVERAGE_")


@cache
def _server() -> ForkServer:
    """Start the server, which finds this module as tests do."""
    server = ForkServer(f"{__name__}:run_request", _PREPARED)
    with mock.patch.dict(os.environ, PYTHONPATH=str(Path(__file__).parents[2])):
        server._connected()
    atexit.register(server.close)
    return server


def run_request() -> NoReturn:
    """Be the command, in the fork."""
    env, cwd, program = json.loads(sys.argv[0])
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    # These tell click the program's name.
    sys.modules["__main__"].__package__ = None if program else "torchyard"
    sys.argv[0] = program or "__main__.py"
    main()
