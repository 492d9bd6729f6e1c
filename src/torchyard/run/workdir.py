"""The directory that one job works in, and what is known about how far it got.

    torchyard-order.json    the job itself
    state.json              what has been done
    inputs/STAGE/           the results that it needs
    build/                  where steps run
    out/                    what will be its result
    home/ tmp/ tools/       its own home, temporary directory and programs
    log                     every line of every step, with its time
    kept                    there if somebody wants to look at all this

Beside it are `NAME.lock`, held by who works in it, `NAME.detached` (see `detached.py`), and
`NAME.gone` while it is removed.

It has the job's fingerprint in its name, so a directory that is there belongs to the same job,
and a job that is run again goes on behind the last step that ended well.
"""

import contextlib
from pathlib import Path

import msgspec

from torchyard.host.locks import locked, remove_folder, replace_bytes
from torchyard.host.process_id import group_is_running, is_same_process
from torchyard.host.process_tree import end_group
from torchyard.model.config import SandboxKind
from torchyard.model.job_spec import ORDER, JobSpec, short_name
from torchyard.model.result import Usage
from torchyard.model.values import Value

KEPT = "kept"
"""A file that says that somebody wants a job's directory to stay."""

RECORD = ".detached"
"""How the file beside a job's directory ends to which a detached run of it writes."""


class State(Value, kw_only=True):
    """How far a job got, and in which sandbox: its paths are in what was made.

    `group` is the process group of a step that may still be running; `born` tells it from others
    that got the same number later, such as after a restart.
    """

    sandbox: SandboxKind = "none"
    steps: tuple[Usage, ...] = ()
    group: int | None = None
    born: str = ""


class WorkDir:
    """One job's directory."""

    def __init__(self, root: Path, order: JobSpec) -> None:
        task = order.task
        self.order = order
        self.folder = root / short_name(task.stage, task.fingerprint)
        self.lock = lock_of(self.folder)
        self.record = root / f"{self.folder.name}{RECORD}"

    @property
    def build(self) -> Path:
        return self.folder / "build"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def inputs(self) -> Path:
        return self.folder / "inputs"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def alone(self, *, wait: bool) -> contextlib.AbstractContextManager[bool]:
        """Keep other processes of this machine out."""
        return locked(self.lock, wait=wait)

    def prepare(self) -> None:
        """Make the directory, end what an earlier try left running, and see if it is of use."""
        self.end_leftover()
        state = self.state()
        if state.steps and state.sandbox != self.order.sandbox.kind:
            remove_folder(self.folder)
            state = State()
        for name in ("build", "out", "inputs", "home", "tmp"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        replace_bytes(self.folder / ORDER, msgspec.json.encode(self.order))
        self.save(State(sandbox=self.order.sandbox.kind, steps=state.steps))

    def end_leftover(self) -> None:
        """End the step of a run that was killed."""
        _end_leftover(self.folder)

    def state(self) -> State:
        return _read_state(self.folder)

    def save(self, state: State) -> None:
        replace_bytes(self.folder / "state.json", msgspec.json.encode(state))

    def keep(self) -> None:
        """Let nobody but a new run of the job remove the directory."""
        (self.folder / KEPT).touch()

    def tidy(self) -> None:
        """Remove what a run left that was killed after its result had been stored."""
        if self.folder.exists() or self.lock.exists():
            with contextlib.suppress(OSError), self.alone(wait=False) as alone:
                if alone:
                    self.clear()

    def clear(self) -> None:
        """Remove everything, unless somebody wants to look at it."""
        if not (self.folder / KEPT).exists():
            self.remove()

    def remove(self) -> None:
        """Leave nothing."""
        remove_work(self.folder)


def lock_of(folder: Path) -> Path:
    """What is held by who works in a job's directory."""
    return folder.with_name(f"{folder.name}.lock")


def remove_work(folder: Path) -> None:
    """Remove a job's directory and its lock, and what an earlier try left running there."""
    _end_leftover(folder)
    remove_folder(folder)
    lock_of(folder).unlink(missing_ok=True)


def _end_leftover(folder: Path) -> None:
    state = _read_state(folder)
    group = state.group
    if group is not None and is_same_process(group, state.born):
        end_group(group, lambda: not group_is_running(group))


def _read_state(folder: Path) -> State:
    with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
        return msgspec.json.decode((folder / "state.json").read_bytes(), type=State)
    return State()
