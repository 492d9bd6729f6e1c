"""Which of the caller's secrets the process of a job is given."""

from collections.abc import Mapping

from torchyard.host.secrets import taken
from torchyard.model.recipe import Stage
from torchyard.store.store import Store


def entrusted(stage: Stage, store: Store) -> Mapping[str, str]:
    """All if it publishes, or its store asks for them; steps see them only of a publish job."""
    if stage is Stage.PUBLISH or store.objects.folder is None:
        return taken()
    return {}
