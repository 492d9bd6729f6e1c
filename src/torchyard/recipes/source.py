"""The steps of stage source, the same for every recipe."""

from torchyard.errors import StoreError
from torchyard.model.config import Source
from torchyard.model.job_spec import JobSpec
from torchyard.model.step import OWN, Step, beside

_SELF = (*OWN, "snapshot", "--to", "{out}")


def snapshot(order: JobSpec) -> tuple[Step, ...]:
    """Return the step that gets the source, and applies its patches."""
    task = order.task
    if task.source is None:
        msg = f"nothing says where the source of {task.id} comes from"
        raise StoreError(msg, hint="run it from its torchyard.toml")
    where, name = _origin(order, task.source)
    patches = ("--patches", "{order}") if task.words("series") else ()
    also = ("--also", "{order}", "--base", "{base}") if task.source.also else ()
    network = task.source.file is None or bool(also)
    return (Step(run=(*_SELF, *where, *also, *patches), name=name, network=network),)


def _origin(order: JobSpec, source: Source) -> tuple[tuple[str, ...], str]:
    """Return the options that say where a source is, and what is done with it."""
    task = order.task
    if source.path is not None:
        where = ("--path", _beside(source.path), "--digest", task.text("digest"))
        names = [_beside(f"{source.path}/{name.rstrip('/')}") for name in source.leave_out]
        left_out = [word for name in ("{file}", *names) for word in ("--leave-out", name)]
        ignored = ("--include-ignored",) if source.include_ignored else ()
        return (*where, *left_out, *ignored), "copy the source"
    if source.archive is not None:
        where = ("--archive", _beside(source.archive), "--digest", task.text("sha256"))
        return where, "unpack the source"
    if source.sdist is not None:
        return ("--sdist", source.sdist, "--digest", task.text("sha256")), "unpack the sdist"
    if source.debian is not None:
        where = ("--debian", source.debian, "--root", "{root}")
        return where, "get the source package"
    where = ("--git", source.git or "", "--rev", source.commit or source.rev or "")
    return where if source.submodules else (*where, "--no-submodules"), "check the source out"


def _beside(place: str) -> str:
    """Return a place as steps see it; braces in it are meant as they are."""
    return beside(place.replace("{", "{{").replace("}", "}}"))
