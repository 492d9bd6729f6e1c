"""The steps of stage publish, the same for every recipe."""

from torchyard.model.job_spec import Task
from torchyard.model.step import OWN, Step, beside

PUBLISHED = "published.json"


def publishing(task: Task) -> tuple[Step, ...]:
    """Return the step that publishes all packages of a plan; the result is a report."""
    place = beside(task.text("url"))
    run = (*OWN, "tool", "publish", "--order", "{order}", "--url", place, "--to", "{out}")
    return (
        Step(
            run=(*run, "{inputs}"),
            name="publish the packages",
            outputs=(PUBLISHED,),
            network=True,
        ),
    )
