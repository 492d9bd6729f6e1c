"""The CPU seconds of commands with all their processes, as a control group counts them.

The usage that a process reports for its children leaves out what a fork server started for it.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import sleep

from torchyard.host.cgroups import control_groups


class ControlGroup:
    """A control group for commands, whose processes are counted together."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def seconds(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None
    ) -> float:
        """Run a command in the group, and return the CPU seconds it used; exit if it fails."""
        before = self._used()
        enter = f'echo $$ >{shlex.quote(str(self._folder))}/cgroup.procs; exec "$@"'
        done = subprocess.run(
            ["sh", "-c", enter, "-", *argv],
            cwd=cwd,
            env=env,
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{shlex.join(argv)} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return self._used() - before

    def _used(self) -> float:
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
