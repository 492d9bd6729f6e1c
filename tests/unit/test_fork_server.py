"""Commands that are forked from a process which has loaded their modules."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.helpers import ROOT

from torchyard.host.fork_server import ForkedProcess, ForkServer

PROGRAM = '''\
"""Do what the words say."""

import os
import signal
import sys
import time


CALLS = []


def prepare():
    CALLS.append(os.getpid())


def interrupt():
    """Send another SIGCHLD after each child that is reaped, before the handler goes on."""
    waitpid = os.waitpid

    def interrupted(pid, options):
        result = waitpid(pid, options)
        if result[0]:
            signal.raise_signal(signal.SIGCHLD)
        return result

    os.waitpid = interrupted


def main():
    print(os.getpid(), *sys.argv, flush=True)
    verb, *words = sys.argv[1:]
    if verb == "exit":
        sys.exit(int(words[0]))
    if verb == "say":
        sys.exit("said")
    if verb == "raise":
        raise ValueError("why")
    if verb == "wait":
        sys.stdin.read()
    if verb == "session":
        print(os.getsid(0) == os.getpid(), signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL)
    if verb == "calls":
        print(len(CALLS), CALLS[0] == os.getppid())
    if verb == "files":
        names = sorted(os.listdir("/proc/self/fd"), key=int)
        # A newer libffi keeps its own file open.
        print(*(n for n in names if "libffi" not in os.path.realpath(f"/proc/self/fd/{n}")))
'''


class Started:
    """A command with pipes for its streams."""

    def __init__(self, server: ForkServer, *words: str) -> None:
        given, self.giving = os.pipe()
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        self.process: ForkedProcess = server.start(
            ["program", *words], stdin=given, stdout=out, stderr=err
        )
        for file in (given, out, err):
            os.close(file)

    def first(self) -> str:
        """Wait for its first line: it runs."""
        return os.read(self.out, 1 << 16).decode()

    def end(self) -> tuple[int, str, str]:
        os.close(self.giving)
        with os.fdopen(self.out) as out, os.fdopen(self.err) as err:
            said = out.read(), err.read()
        return self.process.wait(), *said


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ForkServer]:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT / 'src'}")
    with ForkServer("program:main", ["json", "program:prepare"]) as server:
        yield server


@pytest.mark.parametrize(
    ("words", "code", "err"),
    [
        (("exit", "0"), 0, ""),
        (("exit", "7"), 7, ""),
        (("nothing",), 0, ""),
        (("say",), 1, "said\n"),
        (("raise",), 1, "ValueError: why\n"),
    ],
)
def test_a_command_ends_as_it_would_by_itself(
    server: ForkServer, words: tuple[str, ...], code: int, err: str
) -> None:
    started = Started(server, *words)
    ended, out, said = started.end()
    assert ended == code
    assert out.split() == [str(started.process.pid), "program", *words]
    assert said.endswith(err)
    assert bool(said) == bool(err)


def test_signals_are_told_from_exit_codes(server: ForkServer) -> None:
    first, second = Started(server, "wait"), Started(server, "wait")
    for started in (first, second):
        started.first()
    first.process.terminate()
    os.kill(second.process.pid, signal.SIGKILL)
    assert first.end()[0] == -signal.SIGTERM
    assert second.end()[0] == -signal.SIGKILL
    first.process.terminate()  # it is gone, and that is no error


def test_two_commands_that_end_at_the_same_time_are_both_reported(server: ForkServer) -> None:
    with ForkServer("program:main", ["program:interrupt"]) as interrupted:
        assert [Started(interrupted, "exit", code).end()[0] for code in ("0", "9")] == [0, 9]


def test_functions_are_called_once_for_all_commands(server: ForkServer) -> None:
    for _ in range(2):
        assert Started(server, "calls").end()[1].splitlines()[1] == "1 True"


def test_a_command_has_a_session_and_no_files_of_others(server: ForkServer) -> None:
    waiting = Started(server, "wait")
    waiting.first()
    assert Started(server, "session").end()[1].splitlines()[1] == "True True"
    listing = Started(server, "files").end()[1].splitlines()[1]
    streams, (_own,) = listing.split()[:3], listing.split()[3:]
    assert streams == ["0", "1", "2"]
    assert waiting.end()[0] == 0


def test_commands_outlive_their_server(server: ForkServer) -> None:
    started = Started(server, "wait")
    started.first()
    server.close()
    os.kill(started.process.pid, 0)
    assert started.end()[0] == -signal.SIGKILL  # its real exit code is lost


def test_a_server_that_was_killed_is_replaced(server: ForkServer) -> None:
    assert Started(server, "exit", "3").end()[0] == 3
    server._process.kill()
    server._process.wait()
    assert Started(server, "exit", "4").end()[0] == 4


STARTER = """\
import os
from torchyard.host.fork_server import ForkServer
server = ForkServer("program:main")
null = os.open(os.devnull, os.O_RDWR)
assert server.start(["x", "exit", "0"], stdin=null, stdout=null, stderr=null).wait() == 0
print(server._process.pid, flush=True)
input()
"""


@pytest.mark.usefixtures("server")
def test_the_server_ends_with_the_process_that_started_it() -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert starter.stdout
    ended = os.pidfd_open(int(starter.stdout.readline()))
    starter.kill()
    starter.communicate()
    assert select.select([ended], [], [], 600)[0] == [ended]
    os.close(ended)
