"""Running other programs."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from torchyard.errors import HostError


def own_program(name: str) -> str:
    """A program that was installed with torchyard, or else the one on PATH."""
    beside = shutil.which(name, path=str(Path(sys.executable).parent))
    return beside or shutil.which(name) or name


def bring_program(name: str, target: Path) -> bool:
    """Copy such a program to a place, whole or not at all; whether it is there now."""
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


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        msg = f"`{name}` is not on PATH"
        raise HostError(msg, hint=f"install {name}, or add it to PATH")
    return found


def capture(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    talk: bool = False,
) -> str:
    """Run a program to its end and return what it printed, or say how it failed.

    Without `env` it sees the caller's own environment; with `talk`, its errors are returned, too.
    """
    done = subprocess.run(
        [_program(argv[0]), *argv[1:]],
        cwd=cwd,
        env=env,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    command = " ".join(argv)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace")
        msg = f"`{command}` failed with exit code {done.returncode}: {said}"
        raise HostError(msg)
    try:
        return (done.stdout + done.stderr * talk).decode()
    except UnicodeDecodeError as error:
        msg = f"`{command}` printed something that is no UTF-8 text: {error}"
        raise HostError(msg) from error


def capture_done(argv: Sequence[str], done: str, *, cwd: Path) -> str:
    """Run a program that says on its last line that it is done; how it ends then is no matter."""
    ended = subprocess.run(
        [_program(argv[0]), *argv[1:]],
        cwd=cwd,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    *lines, last = ended.stdout.splitlines() or [""]
    if last != done:
        msg = f"`{argv[0]}` failed with exit code {ended.returncode}: {ended.stderr.strip()}"
        raise HostError(msg)
    return "\n".join(lines)


def stream(argv: Sequence[str], on_line: Callable[[str], object]) -> int:
    """Run a program to its end, and hand on each line of its two streams; return its exit code."""
    with subprocess.Popen(
        [_program(argv[0]), *argv[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as child:
        for line in child.stdout or ():
            on_line(line.rstrip("\n"))
    return child.returncode


def is_running(pid: int) -> bool:
    """Whether a process of this machine exists; a negative number stands for a whole group."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True


def _system() -> str:
    """Since which start of the machine, and in which container, numbers of processes count."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"


def is_of_this_system(born: str) -> bool:
    """Whether a process was born here, so that its number means something to us."""
    return born.partition(" ")[0] == _system()


def birth_of(pid: int) -> str:
    """When a process was started, and in which system: no two are the same."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return f"{_system()} "
    return f"{_system()} {int(status.rpartition(b')')[2].split()[19])}"


def age_of(born: str) -> float:
    """How many seconds ago a process of this system was started."""
    ticks = born.partition(" ")[2]
    if not ticks:
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(ticks) / os.sysconf("SC_CLK_TCK")


def may_be(pid: int, born: str) -> bool:
    """Whether a number still means the process that was born then, or what that one left."""
    return birth_of(pid) in {born, f"{born.partition(' ')[0]} "}


def group_is_running(group: int) -> bool:
    """Whether some process of a process group exists."""
    return is_running(-group)
