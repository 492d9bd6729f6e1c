"""The source stage: one snapshot, the same for every recipe."""

from torchyard.errors import StoreError
from torchyard.model.order import Task
from torchyard.model.step import OWN, Step

_SELF = (*OWN, "snapshot", "--to", "{out}")


def snapshot(task: Task) -> tuple[Step, ...]:
    """Copy a directory, or check a commit out."""
    source = task.source
    if source is None:
        msg = f"nothing says where the source of {task.id} comes from"
        raise StoreError(msg, hint="run it from its torchyard.toml")
    if source.path is not None:
        digest = str(task.settings["digest"])
        where = ("--path", _beside(source.path), "--digest", digest)
        apart = ("{file}", *map(_beside, source.apart))
        left_out = (word for path in apart for word in ("--leave-out", path))
        return (Step(run=(*_SELF, *where, *left_out), name="copy the source"),)
    words = [*_SELF, "--git", source.git or "", "--rev", source.commit or source.rev or ""]
    if not source.submodules:
        words.append("--no-submodules")
    return (Step(run=tuple(words), name="check the source out", network=True),)


def _beside(path: str) -> str:
    """A path, which may be relative to the file, as a word of a step."""
    escaped = path.replace("{", "{{").replace("}", "}}")
    return escaped if path.startswith("/") else f"{{base}}/{escaped}"
