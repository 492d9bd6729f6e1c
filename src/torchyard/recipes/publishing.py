"""The steps of stage publish, the same for every recipe."""

from torchyard.model.job_spec import Task
from torchyard.model.recipe import Stage
from torchyard.model.step import OWN, Step, beside
from torchyard.recipes.proof import is_evidence

PUBLISHED = "published.json"

CONFINED = "confined.txt"
"""A file beside the folders of the stages, with the cells whose packages are made in a sandbox."""

OTHERS = "others"
"""The folder of results that are neither packages nor evidence, beside those of the stages."""


def input_place(task: Task) -> str:
    """Return where a publication finds the result of a job: STAGE/SCOPE below its inputs.

    Steps of the project may have written what is in a package result, or in that of a check whose
    steps the file replaces. So only reports of torchyard's own jobs are where evidence is read.
    """
    path = f"{task.stage}/{task.scope}"
    return path if task.stage is Stage.PACKAGE or is_evidence(task) else f"{OTHERS}/{path}"


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
