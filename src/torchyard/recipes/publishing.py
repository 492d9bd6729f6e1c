"""The steps of stage publish, which all recipes share."""

from torchyard.model.job_spec import Task
from torchyard.model.recipe import Stage
from torchyard.model.step import OWN, Step, beside
from torchyard.recipes.proof import is_evidence

PUBLISHED = "published.json"

CONFINED = "confined.txt"
"""A file beside the stages' folders with the cells whose packages are made in a sandbox."""

TRUSTED = "trusted.json"
"""A file beside it with the trust of the machine that runs the publish job, or null."""

OTHERS = "others"
"""The folder, beside the stages', of results that are neither packages nor evidence."""


def input_path(task: Task, *, trusted: bool) -> str:
    """Return where a publication finds a job's result: STAGE/SCOPE below its inputs.

    Project steps may have written a package's result, or that of a check that the file replaces.
    So evidence is read only from the paths of torchyard's own reports. Reports of checks are none
    if it is unknown who made the results (not `trusted`): a publication repeats the checks.
    """
    path = f"{task.stage}/{task.scope}"
    counts = is_evidence(task) and (trusted or task.stage is not Stage.CHECK)
    return path if task.stage is Stage.PACKAGE or counts else f"{OTHERS}/{path}"


def publishing(task: Task) -> tuple[Step, ...]:
    """Return the step that publishes all packages of a plan; the result is a report."""
    url = beside(task.text("url"))
    run = (*OWN, "tool", "publish", "--spec", "{spec}", "--url", url, "--to", "{out}")
    return (
        Step(
            run=(*run, "{inputs}"),
            name="publish the packages",
            outputs=(PUBLISHED,),
            network=True,
        ),
    )
