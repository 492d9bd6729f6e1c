"""The work directory of a job, and its state.

    torchyard-spec.json    the job itself
    state.json              what has been done
    log                     every line of every step, with its time
    kept                    present if the directory must not be removed
    tools/ toolchain/ env/  programs for the steps
    job/                    what the steps own:
      inputs/STAGE/         the results that the job needs
      build/                where steps run
      out/                  what will be its result
      home/ tmp/            its own home and temporary directory

A sandbox lets steps write to `job` only. What they leave there is used as an `UntrustedTree`.

Beside it are `NAME.lock`, held by the process that works in it, `NAME.detached` (see
`detached.py`), and `NAME.gone` while it is removed.

Its name contains the job's fingerprint, so an existing directory belongs to the same job, and a job
that is run again continues after the last step that succeeded. But not after a reboot: nothing in
it is synced, so a power cut may have left any of its files empty.
"""

import contextlib
from pathlib import Path

import msgspec

from torchyard.host.locks import locked, remove_folder, replace_bytes
from torchyard.host.process_id import boot_id, group_is_running, is_same_process
from torchyard.host.process_tree import end_group
from torchyard.host.untrusted_tree import UntrustedTree
from torchyard.model.config import SandboxKind
from torchyard.model.job_spec import SPEC_FILE, JobSpec, short_name
from torchyard.model.result import CONTINUED, Usage
from torchyard.model.values import Value

KEPT = "kept"
"""A file that protects a job's directory from removal."""

BUILD = "build"
OUT = "out"
INPUTS = "inputs"

EQUIPMENT = ("tools", "toolchain", "env")
"""The directories of programs for the steps, which no step can write."""

RECORD = ".detached"
"""The suffix of a detached run's record beside the job's directory."""


class JobState(Value, kw_only=True):
    """The finished steps of a job, and their sandbox, whose paths are in its outputs.

    `unfinished` is the saved usage of failed tries of the next step.
    `group` is the process group of a step that may still be running; `born` distinguishes it from
    a later one with the same number, such as after a reboot. `boot` identifies the boot of the
    machine that made the directory. `tools` are the variables of its toolchain, once equipped.
    `is_continued` means that it started with files written by steps of an earlier build.
    """

    sandbox: SandboxKind = "none"
    steps: tuple[Usage, ...] = ()
    unfinished: Usage | None = None
    group: int | None = None
    born: str = ""
    boot: str = ""
    tools: dict[str, str] | None = None
    is_continued: bool = False

    @property
    def facts(self) -> dict[str, str]:
        """The facts for the result's manifest: its sandbox, and whether it was continued."""
        return {"sandbox": self.sandbox} | ({CONTINUED: "yes"} if self.is_continued else {})

    @property
    def seconds(self) -> float:
        """The wall-clock time of all steps and their tries."""
        return sum(used.seconds for used in (*self.steps, self.unfinished) if used)


class WorkDir:
    """A job's directory; by default, its name is the job's."""

    def __init__(self, root: Path, spec: JobSpec, name: str | None = None) -> None:
        task = spec.task
        self.spec = spec
        self.folder = root / (name or short_name(task.stage, task.fingerprint))
        self.lock = lock_path(self.folder)
        self.record = root / f"{self.folder.name}{RECORD}"

    @property
    def job(self) -> Path:
        """The steps' directory."""
        return self.folder / "job"

    @property
    def build(self) -> Path:
        return self.job / BUILD

    @property
    def out(self) -> Path:
        return self.job / OUT

    @property
    def inputs(self) -> Path:
        return self.job / INPUTS

    @property
    def log(self) -> Path:
        return log_path(self.folder)

    @property
    def spec_path(self) -> Path:
        return self.folder / SPEC_FILE

    def alone(self, *, wait: bool) -> contextlib.AbstractContextManager[bool]:
        """Keep other processes of this machine out."""
        return locked(self.lock, wait=wait)

    def prepare(self, sandbox: SandboxKind, *, as_left: bool = False) -> None:
        """Make the directory, end processes of an earlier run, and remove unusable files.

        An inspected directory (`as_left`) is kept even after a reboot.
        """
        self.end_leftover()
        state = self.state()
        is_other = state.steps and (state.sandbox != sandbox or not self.job.is_dir())
        if is_other or (state.boot != boot_id() and not (as_left and self.folder.exists())):
            remove_folder(self.folder)
            state = JobState(boot=boot_id())
        self.make_directories()
        self.save(msgspec.structs.replace(state, sandbox=sandbox, group=None, born="", tools=None))

    def make_directories(self) -> None:
        """Make the directories for steps, and write the spec."""
        self.job.mkdir(parents=True, exist_ok=True)
        with UntrustedTree(self.job) as tree:
            for name in (BUILD, OUT, INPUTS, "home", "tmp"):
                tree.make_directory(name)
        for name in EQUIPMENT:
            (self.folder / name).mkdir(exist_ok=True)
        replace_bytes(self.spec_path, msgspec.json.encode(self.spec))

    def end_leftover(self) -> None:
        """End a step left by a killed run."""
        _end_leftover(self.folder)

    def state(self) -> JobState:
        return _read_state(self.folder)

    def save(self, state: JobState) -> None:
        replace_bytes(self.folder / "state.json", msgspec.json.encode(state))

    def keep(self) -> None:
        """Protect the directory: only a new run of the job removes it."""
        (self.folder / KEPT).touch()

    def tidy(self) -> None:
        """Remove leftovers of a run that was killed after storing its result."""
        if self.folder.exists() or self.lock.exists():
            with contextlib.suppress(OSError), self.alone(wait=False) as alone:
                if alone:
                    self.clear()

    def clear(self) -> None:
        """Remove everything, unless protected."""
        if not (self.folder / KEPT).exists():
            self.remove()

    def remove(self) -> None:
        """Remove everything."""
        remove_work(self.folder)


def log_path(folder: Path) -> Path:
    """Return the log in a job's directory."""
    return folder / "log"


def lock_path(folder: Path) -> Path:
    """Return the lock file of a job's directory."""
    return folder.with_name(f"{folder.name}.lock")


def remove_work(folder: Path) -> None:
    """Remove a job's directory and lock, and end processes of an earlier run in it."""
    _end_leftover(folder)
    remove_folder(folder)
    lock_path(folder).unlink(missing_ok=True)


def _end_leftover(folder: Path) -> None:
    state = _read_state(folder)
    group = state.group
    if group is not None and is_same_process(group, state.born):
        end_group(group, lambda: not group_is_running(group))


def _read_state(folder: Path) -> JobState:
    with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
        return msgspec.json.decode((folder / "state.json").read_bytes(), type=JobState)
    return JobState()
