"""The steps of stage source, the same for every recipe."""

from torchyard.errors import StoreError
from torchyard.model.job_spec import JobSpec
from torchyard.model.step import OWN, Step

_SNAPSHOT = "tool snapshot --spec {spec} --file {file} --root={root} --to {out}"
_DONE = {
    "path": "copy the source",
    "archive": "unpack the source",
    "sdist": "unpack the sdist",
    "debian": "get the source package",
    "git": "check the source out",
}
"""What is done with a source, by the key that says where it is."""


def snapshot(spec: JobSpec) -> tuple[Step, ...]:
    """Return the step that gets the source, with what its build downloads, and patches it."""
    task, source = spec.task, spec.task.source
    if source is None:
        msg = f"nothing says where the source of {task.id} comes from"
        raise StoreError(msg, hint="run it from its torchyard.toml")
    name = next(name for key, name in _DONE.items() if getattr(source, key) is not None)
    network = source.file is None or bool(source.also)
    return (Step(run=(*OWN, *_SNAPSHOT.split()), name=name, network=network),)
