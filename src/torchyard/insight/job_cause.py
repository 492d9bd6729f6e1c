"""Why a job ran again: its fingerprint's inputs, compared with its last result."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.step import Setting

NEVER = "it was never built before"

_LONGEST = 60
"""The longest value to show uncut."""

_NAMED = 3
"""The most changed source files to name."""


class RebuildCause(NamedTuple):
    """The first change, and the files or jobs it passed through, the nearest last."""

    first: str
    way: tuple[str, ...] = ()


def job_cause(
    now: JobSpec,
    before: JobSpec | None,
    changed: Callable[[str, str], Sequence[str]] = lambda _now, _before: (),
) -> RebuildCause:
    """Return the first difference between two runs of a job, nearest to the source.

    `changed` returns the files that differ between the results of two fingerprints.
    """
    if before is None:
        return RebuildCause(NEVER)
    earlier = {(task.stage, task.scope): task for task in before.tasks}
    for task in now.tasks:
        known = earlier.get((task.stage, task.scope))
        change = _change(task, known) if known else "is new"
        if change:
            if task is now.task:
                return RebuildCause(f"its {change}" if known else NEVER)
            name, _, how = change.partition(" ")
            first = f"{name} of {task.id} {how}" if known else f"{task.id} is new"
            if known and task.stage is Stage.SOURCE and task.label == known.label:
                files = changed(task.fingerprint, known.fingerprint)
                more = f" and {len(files) - _NAMED} more files" if len(files) > _NAMED else ""
                first = f"{', '.join(files[:_NAMED])}{more} changed" if files else first
            return RebuildCause(first, tuple(_way(now, task)))
    return RebuildCause("its result was removed from the store, or rebuilt on purpose")


def _way(spec: JobSpec, start: Task) -> Iterator[str]:
    """Yield the jobs between the changed one and the last one."""
    changed = {start.fingerprint}
    for task in spec.tasks[:-1]:
        if not changed.isdisjoint(task.inputs):
            changed.add(task.fingerprint)
            yield task.id


def _change(now: Task, before: Task) -> str:
    """Return the first difference of a task except its inputs, or ""."""
    if now.label != before.label:
        return f"version changed from {before.label} to {now.label}"
    for name in dict.fromkeys((*now.settings, *before.settings)):
        new, old = now.settings.get(name), before.settings.get(name)
        if new != old:
            return _setting(name, new, old)
    if (now.recipe, now.stage_revision) != (before.recipe, before.stage_revision):
        return "recipe changed with torchyard's version"
    return ""


def _setting(name: str, new: Setting | None, old: Setting | None) -> str:
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        key = next(key for key in (*new, *old) if new.get(key) != old.get(key))
        return _setting(f"{name}.{key}", new.get(key), old.get(key))
    if old is None:
        return f"{name} was set to {_shown(new)}"
    if new is None:
        return f"{name} is no longer {_shown(old)}"
    return f"{name} changed from {_shown(old)} to {_shown(new)}"


def _shown(value: Setting | None) -> str:
    text = value if isinstance(value, str) else repr(value)
    return f"`{text if len(text) <= _LONGEST else f'{text[:_LONGEST]}…'}`"
