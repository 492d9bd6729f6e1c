"""All documents that the farm reads and prints, by the name of their schema."""

from torchyard_farm.client.status import Status
from torchyard_farm.settings.farm import FarmSpec

SCHEMAS: dict[str, object] = {"farm": FarmSpec, "farm-status": Status}
