"""The CPU seconds of commands with all their processes, as a control group counts them.

What a process tells of its children misses those that a server forked for it.
"""

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import sleep

from torchyard.host.cgroups import control_groups


class ControlGroup:
    """A control group for commands, whose processes are counted together."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def enter(self, argv: Sequence[str]) -> list[str]:
        """Return a command that runs another one in the group."""
        return [
            "sh",
            "-c",
            f'echo $$ >{shlex.quote(str(self._folder))}/cgroup.procs; exec "$@"',
            "-",
            *argv,
        ]

    def used(self) -> float:
        """Return the CPU seconds that were used in the group."""
        if (old := self._folder / "cpuacct.usage").exists():
            return int(old.read_text("ascii")) / 1e9
        words = (self._folder / "cpu.stat").read_text("ascii").split()
        return int(words[words.index("usage_usec") + 1]) / 1e6


@contextmanager
def control_group() -> Iterator[ControlGroup]:
    """Make a control group; root can. Processes that are left in it are ended."""
    own = next(iter(control_groups("cpuacct")), None)
    top = Path("/sys/fs/cgroup/cpuacct" if own and not own.unified else "/sys/fs/cgroup")
    folder = top / f"torchyard-{os.getpid()}"
    folder.mkdir()
    try:
        yield ControlGroup(folder)
    finally:
        while left := (folder / "cgroup.procs").read_text("ascii").split():
            for process in left:
                os.kill(int(process), 9)
            sleep(0.1)
        folder.rmdir()
