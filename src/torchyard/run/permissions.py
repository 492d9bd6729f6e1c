"""What a machine is trusted with: which jobs it does, and which secrets their processes get."""

from collections.abc import Collection, Mapping

from torchyard.errors import HostError, UsageError
from torchyard.host.secrets import taken
from torchyard.model.job_spec import Task
from torchyard.model.recipe import Stage
from torchyard.store.store import Store

STAGES = "TORCHYARD_STAGES"
"""The variable by which a machine says what it does, whoever asks it to do more."""


def entrusted(stage: Stage, store: Store) -> Mapping[str, str]:
    """All if it publishes, or its store asks for them; steps see them only of a publish job."""
    if stage is Stage.PUBLISH or store.objects.folder is None:
        return taken()
    return {}


def parse_stages(text: str) -> frozenset[Stage]:
    """Read `core,bindings`."""
    try:
        return frozenset(Stage(word.strip()) for word in text.split(","))
    except ValueError as error:
        msg = f"`{text}` is no list of stages: {error}"
        raise UsageError(msg, hint=f"the stages are {', '.join(Stage)}") from error


def refuse_others(task: Task, stages: Collection[Stage]) -> None:
    """Refuse a job of a stage that this machine does not do; to try again would not help."""
    if task.stage not in stages:
        does = ", ".join(stage for stage in Stage if stage in stages)
        msg = f"this machine refuses {task.id}: it does {does}, not {task.stage}"
        hint = f"send it to another machine; --stages or {STAGES} says what this one does"
        raise HostError(msg, hint=hint)
