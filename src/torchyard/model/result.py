"""The result of a job in the store: files by digest, log, timings, facts."""

from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from torchyard.model.job_spec import JobSpec
from torchyard.model.values import Digest, Value

Size = Annotated[int, Meta(ge=0, lt=1 << 62)]
Nanoseconds = Annotated[int, Meta(gt=-(1 << 62), lt=1 << 62)]

CONTINUED = "continued"
"""The fact of a result whose job started with files of an earlier build."""

SAME_AS = "same as"
"""The fact of a result that was not made again: the fingerprint of that of other inputs."""


class Part(Value, kw_only=True):
    """A range of a file's bytes that is stored as its own blob."""

    digest: Digest
    size: Size


class File(Value, kw_only=True):
    """A file of a result; `mtime` is in nanoseconds. Its bytes are one blob, or consecutive parts.

    Packages that differ in a few members share the blobs of the other members as parts.
    """

    path: str
    digest: Digest
    size: Size
    mtime: Nanoseconds
    executable: bool = False
    parts: tuple[Part, ...] = ()

    @property
    def blobs(self) -> tuple[Part, ...]:
        """Return the blobs to fetch, in order."""
        return self.parts or (Part(digest=self.digest, size=self.size),)


class Tree(Value, kw_only=True):
    """Everything below a directory, sorted by path."""

    files: tuple[File, ...] = ()
    links: dict[str, str] = {}
    empty: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The sha256 of its only file; empty if there are several."""
        return self.files[0].digest if len(self.files) == 1 else ""

    def without(self, folder: str) -> "Tree":
        """Return the tree without a folder."""
        below = f"{folder}/"
        return Tree(
            files=tuple(file for file in self.files if not file.path.startswith(below)),
            links={p: to for p, to in self.links.items() if not p.startswith(below)},
            empty=tuple(path for path in self.empty if not f"{path}/".startswith(below)),
        )

    def below(self, folder: str) -> "Tree":
        """Return the tree of a folder, with paths relative to it."""
        start = f"{folder}/"
        return Tree(
            files=tuple(
                replace(file, path=file.path.removeprefix(start))
                for file in self.files
                if file.path.startswith(start)
            ),
            links={
                p.removeprefix(start): to for p, to in self.links.items() if p.startswith(start)
            },
            empty=tuple(p.removeprefix(start) for p in self.empty if p.startswith(start)),
        )


class Usage(Value, kw_only=True):
    """Resource usage of a step: wall clock and CPU seconds, bytes of memory and disk.

    If it took several `tries`, because some failed or were stopped, times are added up,
    and sizes are the largest.
    """

    step: str
    seconds: float
    cpu: float
    memory: int
    disk: int
    tries: int = 1

    def after(self, earlier: "Usage | None") -> "Usage":
        """Return the usage of this try and of earlier ones of the same step."""
        if earlier is None or earlier.step != self.step:
            return self
        return Usage(
            step=self.step,
            seconds=round(earlier.seconds + self.seconds, 3),
            cpu=round(earlier.cpu + self.cpu, 3),
            memory=max(earlier.memory, self.memory),
            disk=max(earlier.disk, self.disk),
            tries=earlier.tries + self.tries,
        )


class Reads(Value, kw_only=True):
    """The files of its inputs that a job read, of `total`; see `model/reads.py`.

    `key` names the result for all inputs that differ only in other files. `carried` are those other
    files in the result, by their path there.
    """

    key: Digest
    files: tuple[str, ...]
    total: int
    carried: dict[str, str] = {}


class Result(Value, kw_only=True):
    """The manifest of a finished job. `run` is unique: it distinguishes two writers.

    `reads` is absent if it could not be observed: then the result depends on all of its inputs.

    `sidecars` are files about its packages, to be laid out beside them, that torchyard wrote.
    `key` is the public key of its maker, if that has one, whose `signature` covers all else.
    """

    version: Literal[1] = 1
    fingerprint: Digest
    spec: JobSpec
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
    sidecars: tuple[File, ...] = ()
    reads: Reads | None = None
    key: str = ""
    signature: str = ""

    @property
    def id(self) -> str:
        return self.spec.task.id

    @property
    def delivery(self) -> Tree:
        """Return its files with the sidecars beside them."""
        return replace(self.tree, files=(*self.tree.files, *self.sidecars))

    @property
    def tries(self) -> int:
        """How often its steps were started, including stopped attempts."""
        return 1 + sum(used.tries - 1 for used in self.steps)

    @property
    def size(self) -> int:
        """Total bytes of all files, duplicates included."""
        return sum(file.size for file in self.tree.files)

    def blobs(self) -> dict[str, int]:
        """Return every blob that this result needs, with its size."""
        files = (*self.delivery.files, self.log)
        return {part.digest: part.size for file in files for part in file.blobs}
