"""Jobs whose steps attack the machine, run in this process or as another user."""

import json
import os
import subprocess
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import pytest
from msgspec.structs import replace

from torchyard.errors import TorchyardError
from torchyard.model.canonical import fingerprint
from torchyard.model.config import Sandbox, SandboxKind
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.step import SHELL, Step
from torchyard.run.conditions import Conditions
from torchyard.run.job import run_job
from torchyard.store.store import Store

SECRET = "what only the machine may know"
NOBODY = 65534
ROOT = Path(__file__).parents[2]
KINDS: dict[str, SandboxKind] = {kind: kind for kind in get_args(SandboxKind)}


class Attempt(NamedTuple):
    """How a job ended: its error or "", and the files of its result with their links' targets."""

    error: str
    files: tuple[str, ...] = ()


class Machine:
    """A folder with files of the machine, and beside it the work directory and store of jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.victim = folder / "victim"
        self.work = folder / "work"
        self.file = folder / "project" / "torchyard.toml"
        if not self.victim.exists():
            (self.victim / "sub").mkdir(parents=True)
            self.file.parent.mkdir()
            self.file.touch()
            for path in (self.victim / "file", self.victim / "sub" / "file"):
                path.write_text(SECRET, encoding="utf-8")
        self.before = self.picture()

    def picture(self) -> list[tuple[str, int, int, bytes]]:
        """Return everything that a job must not change."""
        found = []
        for path in sorted([self.victim, *self.victim.rglob("*")]):
            status = path.lstat()
            text = path.read_bytes() if path.is_file() else b""
            found.append((str(path), status.st_mode, status.st_mtime_ns, text))
        return found

    def run(self, *scripts: str, kind: SandboxKind = "bwrap", **env: str) -> Attempt:
        """Run the shell scripts as steps of a job. `VICTIM` is the folder to attack."""
        env = {"VICTIM": str(self.victim), **env}
        steps = tuple(Step(run=(*SHELL, script), env=env) for script in scripts)
        conditions = Conditions(self.work, str(self.file), sandbox=Sandbox(kind=kind))
        store = Store.at(str(self.folder / "store"))
        try:
            made = run_job(spec_of(*steps), store, conditions, lambda _: None).result
        except TorchyardError as error:
            return Attempt(str(error) or "an error")
        except Exception:  # noqa: BLE001 - what a test must not find
            return Attempt(f"TRACEBACK {traceback.format_exc()}")
        links = (f"{path} -> {target}" for path, target in made.tree.links.items())
        return Attempt("", (*(file.path for file in made.tree.files), *links, *made.tree.empty))

    def assert_unharmed(self) -> None:
        assert self.picture() == self.before
        for path in (self.folder / "store").rglob("*"):
            assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def spec_of(*steps: Step) -> JobSpec:
    scope = "linux-x86_64/cpu-openblas"
    task = Task(
        id=f"core:demo-1.0/{scope}",
        stage=Stage.CORE,
        stage_revision=1,
        scope=scope,
        recipe="pytorch",
        fingerprint="0" * 64,
        settings={"steps": steps, "name": "demo", "version": "1.0"},
    )
    return JobSpec(tasks=(replace(task, fingerprint=fingerprint(task.payload)),))


def attempt_twice(machine: Machine, scripts: Sequence[str], kind: SandboxKind) -> Attempt:
    """Run a job twice, so that the second run finds what the first left."""
    first = machine.run(*scripts, kind=kind)
    second = machine.run(*scripts, kind=kind)
    return Attempt(first.error or second.error, first.files or second.files)


def as_nobody(machine: Machine, scripts: Sequence[str], kind: SandboxKind) -> Attempt:
    """Run a job twice as an ordinary user, to whom the machine's folder is given."""
    python = f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    if not Path(python).exists():
        pytest.skip(f"there is no {python} that other users can run")
    for path in [machine.folder, *machine.folder.rglob("*")]:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    ids = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    paths = (ROOT / "src", ROOT, sysconfig.get_path("purelib"))
    done = subprocess.run(
        ["setpriv", *ids, python, "-P", "-m", "tests.support.hostile_steps", machine.folder, kind],
        env={"PATH": os.defpath, "PYTHONPATH": ":".join(map(str, paths))},
        input=json.dumps(scripts),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip(f"others can't use what is installed: {done.stderr}")
    error, files = json.loads(done.stdout)
    return Attempt(error, tuple(files))


if __name__ == "__main__":
    done = attempt_twice(Machine(Path(sys.argv[1])), json.load(sys.stdin), KINDS[sys.argv[2]])
    print(json.dumps(done))
