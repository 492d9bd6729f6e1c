"""The steps of stages check and smoke, which all recipes share."""

from torchyard.model.job_spec import Task
from torchyard.model.recipe import Stage
from torchyard.model.recipe_output import RECIPE_CHANNELS
from torchyard.model.step import OWN, Step, beside

_TOOL = (*OWN, "tool")
_META = "conda-meta"

PUBLISHED = "published"
"""The setting of jobs that test a published file: the file and its public address."""


_FOREIGN = frozenset(("steps", "env", "pass_env"))
"""Settings of the file that change how a job runs."""


def is_evidence(task: Task) -> bool:
    """Return whether a job's report is evidence: only torchyard's own steps wrote it."""
    return task.stage in (Stage.CHECK, Stage.SMOKE) and _FOREIGN.isdisjoint(task.settings)


def recipe_channels(task: Task) -> list[str]:
    """Return the channels that a conda recipe is tested with, as this machine reaches them."""
    if RECIPE_CHANNELS not in task.settings:
        return []
    from torchyard.toolchain.conda_lock import find_channel  # noqa: PLC0415 - few jobs have one

    return [*map(find_channel, task.words(RECIPE_CHANNELS))]


def proof(task: Task) -> tuple[Step, ...]:
    """Return the steps that check or test a package; the result is a report."""
    given = ("--spec", "{spec}", "--to", "{out}", "{package}")
    if task.stage is Stage.CHECK:
        return (Step(run=(*_TOOL, "check", *given), name="look into the package"),)
    paths = tuple(map(beside, (*task.words("channels"), *recipe_channels(task))))
    channels = tuple(word for path in paths for word in ("--channel", path))
    if PUBLISHED in task.settings:
        return (
            Step(
                run=(*_TOOL, "visit", *channels, "--spec", "{spec}", "--to", "{out}"),
                name="install and try what is published",
                network=True,
            ),
        )
    if task.facts["kind"] == _META:
        return ()  # it has no files, and needs a package for any Python, which is no input
    around = ("--inputs", "{inputs}", *channels)
    return (
        Step(
            run=(*_TOOL, "smoke", *around, *given),
            name="install and try the package",
            network=any("://" in path and not path.startswith("file://") for path in paths),
        ),
    )
