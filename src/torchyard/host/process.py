"""Run programs to completion; write their stdin, and read their output by lines."""

import contextlib
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torchyard.errors import HostError
from torchyard.host.cache import runnable_folder
from torchyard.host.keyring import leave_session_keyring

if TYPE_CHECKING:
    from torchyard.model.config import SandboxKind


def with_variables(
    argv: Sequence[str], env: Mapping[str, str], kind: "SandboxKind"
) -> tuple[list[str], list[int]]:
    """Return bwrap's command with variables for its program, and handles of their list and filter.

    In a sandbox, unlike in a view, the program can't make some system calls. Start it with the
    handles and an empty environment, then close the handles.
    """
    for name, value in env.items():
        if "\0" in name or "\0" in value:  # the rest would be an option of bwrap
            msg = f"the variable `{name}` has a NUL character, which is impossible"
            raise HostError(msg)
    leave_session_keyring()
    options = (word for name, value in env.items() for word in ("--setenv", name, value))
    variables = _readable(b"".join(os.fsencode(word) + b"\0" for word in options))
    words = [argv[0], "--args", str(variables)]
    if kind != "bwrap":
        return [*words, *argv[1:]], [variables]
    from torchyard.host.syscall_filter import filter_program  # noqa: PLC0415 - reads a table

    if not (program := filter_program()):
        return [*words, *argv[1:]], [variables]
    calls = _readable(program)
    return [*words, "--seccomp", str(calls), *argv[1:]], [variables, calls]


def _readable(data: bytes) -> int:
    """Return a handle from which a program can read some bytes."""
    handle = os.memfd_create("bwrap")
    with open(handle, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def replace_by_sandboxed(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], kind: "SandboxKind"
) -> None:
    """Replace this program by bwrap, in the same terminal, with variables for its program."""
    words, handles = with_variables(argv, env, kind)
    for handle in handles:
        os.set_inheritable(handle, True)  # noqa: FBT003 - has no keyword
    replace_process(words, cwd=cwd, env={})


OWN_PREFIX = "/mnt/own"
"""The path of torchyard's installation in a root whose own Python runs it."""

_READ = 1 << 16


def own_program(name: str) -> str:
    """Return the path of a program installed with torchyard, else of the one on PATH."""
    folders = Path(sys.executable).parent, Path(OWN_PREFIX, "bin")
    beside = shutil.which(name, path=os.pathsep.join(map(str, folders)))
    return beside or shutil.which(name) or name


def bring_program(name: str, target: Path) -> bool:
    """Copy such a program to `target`, completely or not at all; return whether it exists now."""
    if target.exists():
        return True
    found = shutil.which(own_program(name))
    if found is None:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    shutil.copy2(found, part)
    part.replace(target)
    return True


def capture(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    talk: bool = False,
    limit: float | None = None,
) -> str:
    """Run a program and return its stdout; raise HostError if it fails.

    Without `env` it inherits the environment; with `talk`, its stderr is returned, too. After
    `limit` seconds it is killed, which raises TimeoutError.
    """
    done = _run(argv, cwd, env, limit)
    command = " ".join(argv)
    if done.returncode:
        output = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace")
        msg = f"`{command}` failed with exit code {done.returncode}: {output}"
        raise HostError(msg)
    try:
        return (done.stdout + done.stderr * talk).decode()
    except UnicodeDecodeError as error:
        msg = f"`{command}` printed text that is not UTF-8: {error}"
        raise HostError(msg) from error


def capture_done(argv: Sequence[str], done: str, *, cwd: Path, env: Mapping[str, str]) -> str:
    """Run a program whose last line must be `done`, and return the lines before it.

    Its exit code is ignored.
    """
    ended = _run(argv, cwd, env)
    *lines, last = ended.stdout.decode(errors="replace").splitlines() or [""]
    if last != done:
        output = ended.stderr.decode(errors="replace").strip()
        msg = f"`{argv[0]}` failed with exit code {ended.returncode}: {output}"
        raise HostError(msg)
    return "\n".join(lines)


def stream(
    argv: Sequence[str], on_line: Callable[[str], object], env: Mapping[str, str] | None = None
) -> int:
    """Run a program, pass each line of stdout and stderr to `on_line`, and return the exit code."""
    with subprocess.Popen(
        [_program(argv[0]), *argv[1:]],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as child:
        for line in child.stdout or ():
            on_line(line.rstrip("\n"))
    return child.returncode


def replace_process(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
    """Replace this program by another one, in the same terminal."""
    os.chdir(cwd)
    os.execvpe(argv[0], list(argv), dict(env))  # noqa: S606 - intended


def hand_over(process: subprocess.Popen[bytes], data: bytes) -> None:
    """Write all of a program's stdin and close it; ignore that the program ends first."""
    assert process.stdin is not None  # noqa: S101 - callers ask for a pipe
    with contextlib.suppress(BrokenPipeError), process.stdin:
        process.stdin.write(data)


@contextlib.contextmanager
def removed_later(prefix: str) -> Iterator[Path]:
    """Yield a temporary directory to run programs in; another process removes it, in minutes."""
    from tempfile import mkdtemp  # noqa: PLC0415 - slow to import

    folder = Path(mkdtemp(prefix=prefix, dir=runnable_folder()))
    try:
        yield folder
    finally:
        remove = 'rm -rf "$0" || { chmod -R u+rwX "$0"; rm -rf "$0"; }'
        argv = ["/bin/sh", "-c", f"{{ {remove}; }} </dev/null >/dev/null 2>&1", str(folder)]
        os.posix_spawn(argv[0], argv, os.environ, setsid=True)


class LineReader:
    """Reads complete lines from a file descriptor; `rest` is the incomplete last line.

    A line longer than `longest` comes in parts, so that memory is bounded.
    """

    def __init__(self, handle: int, longest: int | None = None) -> None:
        self.handle = handle
        self.rest = b""
        self._longest = longest

    def read(self) -> tuple[list[bytes], int]:
        """Read once; return the lines completed now, and the number of bytes, 0 at the end."""
        data = os.read(self.handle, _READ)
        *lines, self.rest = (self.rest + data).split(b"\n")
        if self._longest is not None and len(self.rest) > self._longest:
            lines.append(self.rest)
            self.rest = b""
        return lines, len(data)


def unread_bytes(pipe: int) -> int:
    """Return the number of bytes in a pipe or fifo."""
    import termios  # noqa: PLC0415 - missing on Windows
    from fcntl import ioctl  # noqa: PLC0415

    count: int = struct.unpack("i", ioctl(pipe, termios.FIONREAD, bytes(4)))[0]
    return count


def _run(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str] | None,
    limit: float | None = None,
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [_program(argv[0]), *argv[1:]],
            cwd=cwd,
            env=env,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        msg = f"`{name}` is not on PATH"
        raise HostError(msg, hint=f"install {name}, or add it to PATH")
    return found
