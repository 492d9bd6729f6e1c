"""What a job leaves in the store: files by digest, log, timings, facts."""

from typing import Literal

from torchyard.model.job_spec import JobSpec
from torchyard.model.values import Value


class Part(Value, kw_only=True):
    """A stretch of a file's bytes that is stored by itself."""

    digest: str
    size: int


class File(Value, kw_only=True):
    """A file of a result; `mtime` is in nanoseconds. Its bytes are one blob, or parts in a row.

    Two packages that differ in a few members can share the blobs of all others as parts.
    """

    path: str
    digest: str
    size: int
    mtime: int
    executable: bool = False
    parts: tuple[Part, ...] = ()

    @property
    def blobs(self) -> tuple[Part, ...]:
        """The blobs to fetch, in order."""
        return self.parts or (Part(digest=self.digest, size=self.size),)


class Tree(Value, kw_only=True):
    """Everything below a directory, in the order of its paths."""

    files: tuple[File, ...] = ()
    links: dict[str, str] = {}
    empty: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The sha256 of its only file; if there are several, there is none."""
        return self.files[0].digest if len(self.files) == 1 else ""


class Usage(Value, kw_only=True):
    """What a step cost: seconds on the clock and of processors, bytes of memory and disk."""

    step: str
    seconds: float
    cpu: float
    memory: int
    disk: int


class Result(Value, kw_only=True):
    """The manifest of a finished job. `run` is unique: it tells two writers apart."""

    version: Literal[1] = 1
    fingerprint: str
    order: JobSpec
    tree: Tree = Tree()
    log: File
    steps: tuple[Usage, ...] = ()
    facts: dict[str, str] = {}
    environment: dict[str, str] = {}
    machine: str = ""
    started: str = ""
    seconds: float = 0.0
    torchyard: str = ""
    run: str = ""

    @property
    def id(self) -> str:
        return self.order.task.id

    @property
    def size(self) -> int:
        """Bytes of the files, each counted as often as it is there."""
        return sum(file.size for file in self.tree.files)

    def blobs(self) -> dict[str, int]:
        """Every blob that this result needs, with its size."""
        files = (*self.tree.files, self.log)
        return {part.digest: part.size for file in files for part in file.blobs}
