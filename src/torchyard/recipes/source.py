"""The steps of stage source, the same for every recipe."""

from torchyard.errors import StoreError
from torchyard.model.job_spec import JobSpec
from torchyard.model.step import OWN, Step, beside

_SELF = (*OWN, "snapshot", "--to", "{out}")


def snapshot(order: JobSpec) -> tuple[Step, ...]:
    """Return the step that copies a directory, checks out a commit or gets a source package."""
    task = order.task
    source = task.source
    if source is None:
        msg = f"nothing says where the source of {task.id} comes from"
        raise StoreError(msg, hint="run it from its torchyard.toml")
    if source.path is not None:
        digest = str(task.settings["digest"])
        path = source.path.replace("{", "{{").replace("}", "}}")
        where = ("--path", beside(path), "--digest", digest)
        return (Step(run=(*_SELF, *where, "--leave-out", "{file}"), name="copy the source"),)
    if source.debian is not None:
        where = ("--debian", source.debian, "--root", beside(order.sandbox.root or ""))
        return (Step(run=(*_SELF, *where), name="get the source package", network=True),)
    words = [*_SELF, "--git", source.git or "", "--rev", source.commit or source.rev or ""]
    if not source.submodules:
        words.append("--no-submodules")
    return (Step(run=tuple(words), name="check the source out", network=True),)
