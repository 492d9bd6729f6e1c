"""Runs the commands of a page in one shell, in a directory that was prepared for it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.markdown import Typed, difference
from tests.support.forked import forked_program

LIMIT = 600
"""Seconds for one command, on a machine that is busy with other tests."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Where the commands of a page run, and what stands in for things that a test cannot have."""

    folder: Path
    """An empty directory, and HOME."""

    start: Path
    """The directory that the first command is typed in."""

    stack: ExitStack
    stand_ins: dict[str, str] = field(default_factory=dict)
    """Addresses and paths of the page, and what they are here: a server on loopback, a folder."""

    env: dict[str, str] = field(default_factory=dict)

    def real(self, text: str) -> str:
        for told, real in self.stand_ins.items():
            text = text.replace(told, real)
        return text

    def told(self, text: str) -> str:
        for told, real in self.stand_ins.items():
            text = text.replace(real, told)
        return text


PIP = 'pip() { command pip --python "$VIRTUAL_ENV" "$@"; }\n'
"""This Python's pip, for the environment of the page: making one with its own takes seconds."""


def environment(scene: Scene, programs: Path) -> dict[str, str]:
    """Return the environment of a shell; `programs` is a folder with a `torchyard`."""
    beside = Path(sys.executable).parent
    plain = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env = {**plain, "HOME": str(scene.folder), "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9"}
    env |= {f"GIT_{who}_NAME": "test" for who in ("AUTHOR", "COMMITTER")}
    env |= {f"GIT_{who}_EMAIL": "test@example.org" for who in ("AUTHOR", "COMMITTER")}
    env |= {"PATH": f"{programs}:{beside}:{plain['PATH']}", **scene.env}
    env.pop("CI", None)
    return env


class Shell:
    """A shell that commands are typed into, one after another."""

    def __init__(self, scene: Scene, forked: Path) -> None:
        """`forked` is a folder with the program `torchyard` of `tests.support.forked`."""
        self._scene = scene
        self._logs = scene.folder / ".typed"
        self._logs.mkdir()
        self._count = 0
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=scene.start,
            env={**environment(scene, forked), "COLUMNS": "500", "NO_COLOR": "1"},
            start_new_session=True,
        )
        self._write(f"set -o pipefail\n{PIP}")

    def _write(self, text: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()

    def type(self, command: Typed, *, status: int = 0, until: str | None = None) -> str:
        """Run a command, compare its exit status and output with the page, and return the output.

        `until` is what a command that goes on in the foreground prints once it is ready.
        """
        self._count += 1
        log, done = (self._logs / f"{self._count}.{end}" for end in ("log", "done"))
        text = self._scene.real(command.text)
        if until:  # a signal will end it, so it is the program itself
            self._write(f"{{\nPATH=${{PATH#*:}}\n{text}\n}} >{log} 2>&1 </dev/null &\n")
        else:
            self._write(f"{{\n{text}\n}} >{log} 2>&1 </dev/null\n")
        self._write(f"echo $? >{done}.part; mv {done}.part {done}\n")
        where = f"{command.page}:{command.line}: {command.text}\n"
        self._wait(done, log, where)
        if until:
            self._wait_for(until, log, where)
            return ""
        printed = self._scene.told(log.read_text(encoding="utf-8"))
        code = int(done.read_text(encoding="utf-8"))
        assert code == status, f"{where}exit status {code}, not {status}\n{printed}"
        if command.shown:
            wrong = difference(command.shown, printed.splitlines())
            assert wrong is None, where + wrong
        return printed

    def _wait(self, done: Path, log: Path, where: str) -> None:
        began = time.monotonic()
        while not done.exists():
            assert self._process.poll() is None, f"{where}ended the shell\n{log.read_text()}"
            assert time.monotonic() - began < LIMIT, f"{where}takes too long\n{log.read_text()}"
            time.sleep(0.01)

    def _wait_for(self, until: str, log: Path, where: str) -> None:
        began = time.monotonic()
        while until not in log.read_text(encoding="utf-8"):
            assert time.monotonic() - began < LIMIT, f"{where}{log.read_text()}"
            time.sleep(0.05)

    def close(self) -> None:
        """End the shell and what it left running."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                break
            time.sleep(0.1)
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


@contextmanager
def shell_in(scene: Scene) -> Iterator[Shell]:
    with forked_program(scene.folder / ".programs") as program:
        shell = Shell(scene, program.parent)
        try:
            yield shell
        finally:
            shell.close()
