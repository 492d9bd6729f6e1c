"""The second name of a result: by what its job read of its inputs.

A job can't depend on the content of a file that it did not read. It may depend on which files there
are, their kinds and modes, and the targets of links: these are always part of the name.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from msgspec.structs import replace

from torchyard.model.canonical import fingerprint
from torchyard.model.job_spec import JobSpec
from torchyard.model.quantity import show_count
from torchyard.model.recipe import Stage
from torchyard.model.result import File, Reads, Tree

COMMIT = "commit"
"""The name, among the files of inputs, of the source's commit."""


class InputFiles(NamedTuple):
    """The inputs of a job: files by path, as `source/setup.py`, and a digest of all else."""

    shape: str
    files: dict[str, File]

    @classmethod
    def of(cls, spec: JobSpec, trees: Mapping[str, Tree]) -> "InputFiles":
        """Return the files of trees by stage, and the commit as git has it in the build."""
        commit, digest = commit_file(spec), sha256(commit_file(spec)).hexdigest()
        files = {COMMIT: File(path=COMMIT, digest=digest, size=len(commit), mtime=0)}
        shape = [(COMMIT, str(len(commit)))]
        for stage, tree in trees.items():
            for file in tree.files:
                files[f"{stage}/{file.path}"] = file
                shape.append((f"{stage}/{file.path}", "program" if file.executable else "file"))
            shape += [(f"{stage}/{path}", f"link to {to}") for path, to in tree.links.items()]
            shape += [(f"{stage}/{path}", "directory") for path in tree.empty]
        return cls(fingerprint(sorted(shape)), files)


def commit_file(spec: JobSpec) -> bytes:
    """Return what git finds in a build as its HEAD."""
    return f"{spec.commit}\n".encode()


def spec_name(spec: JobSpec) -> str:
    """Return the digest of all that a job depends on besides the source."""
    tasks = (task for task in spec.tasks if task.stage is not Stage.SOURCE)
    return fingerprint([replace(task.payload, inputs=[]) for task in tasks])


def reads_key(name: str, inputs: InputFiles, read: Iterable[str]) -> str | None:
    """Return the second name of a result; None if a file is not there.

    `name` is that of the job's spec, and `read` are the files that the job read.
    """
    try:
        digests = sorted((path, inputs.files[path].digest) for path in read)
    except KeyError:
        return None
    return fingerprint([name, inputs.shape, digests])


def show_reads(reads: Reads) -> str:
    """Say that nothing that a job reads has changed."""
    total = show_count(reads.total, "file")
    return f"of {total} it reads {len(reads.files):,}, none of which changed"


def carry(tree: Tree, reads: Reads, inputs: InputFiles) -> Tree:
    """Return a result's tree with the files that its job did not read as other inputs have them.

    Their times stay: a build tree's are older than all that was made in it.
    """
    others = {path: inputs.files[source] for path, source in reads.carried.items()}
    files = (
        replace(file, digest=other.digest, size=other.size, parts=other.parts)
        if (other := others.get(file.path))
        else file
        for file in tree.files
    )
    return replace(tree, files=tuple(files))
