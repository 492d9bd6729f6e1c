"""Run ninja under slots and the memory guard, as an engine would: FOLDER COUNT."""

import os
import subprocess
import sys
from pathlib import Path

from torchyard.engines.guard import Change, Guard
from torchyard.host.slots import Slots


def log(change: Change) -> None:
    print(f"{change.allowed} allowed, {change.paused} paused: {change.reason}", flush=True)


def main(folder: Path, count: int) -> int:
    roots: list[int] = []
    with Slots(folder / "slots", count) as slots:
        guard = Guard(slots, lambda: roots, log)
        guard.start()
        slots.take()
        env = {**os.environ, "MAKEFLAGS": slots.makeflags}
        ninja = subprocess.Popen(["ninja"], cwd=folder, env=env)
        roots.append(ninja.pid)
        code = ninja.wait()
        slots.give()
        guard.stop()
        lost = slots.recover(0)
        print(f"{lost} slots lost, {slots.free} free", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
