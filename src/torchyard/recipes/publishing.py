"""The steps of stage publish, the same for every recipe."""

from torchyard.model.job_spec import Task
from torchyard.model.recipe import Stage
from torchyard.model.result import CONTINUED, Result
from torchyard.model.step import OWN, Step, beside
from torchyard.recipes.proof import is_evidence
from torchyard.store.store import Store

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


def is_confined(result: Result, store: Store) -> bool:
    """Return whether a package, and what it is made from, was made in a sandbox, from nothing.

    torchyard's own steps for the source need none; those of the file may be any program.
    """
    tasks = (t for t in result.spec.tasks if t.stage is not Stage.SOURCE or "steps" in t.settings)
    made = (store.find(task.fingerprint) for task in tasks)
    return all(
        one is not None and one.facts.get("sandbox") == "bwrap" and CONTINUED not in one.facts
        for one in made
    )


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
