"""The stages that prove a package, the same for every recipe."""

from torchyard.model.order import Task
from torchyard.model.recipe import Stage
from torchyard.model.step import OWN, Step

_TOOL = (*OWN, "tool")
_META = "conda-meta"


def proof(task: Task) -> tuple[Step, ...]:
    """Look into a package, or try it; what is found is the result."""
    given = ("--order", "{order}", "--to", "{out}", "{package}")
    if task.stage is Stage.CHECK:
        return (Step(run=(*_TOOL, "check", *given), name="look into the package"),)
    if task.facts["kind"] == _META:
        return ()  # it holds no files, and fits the package of any Python: none is at hand
    places = tuple(map(_place, task.words("channels")))
    around = ("--inputs", "{inputs}", *(w for place in places for w in ("--channel", place)))
    return (
        Step(
            run=(*_TOOL, "smoke", *around, *given),
            name="install and try the package",
            network=any("://" in place for place in places),
        ),
    )


def _place(channel: str) -> str:
    """A channel that is no address is a directory beside the file."""
    return channel if "://" in channel else f"{{base}}/{channel}"
