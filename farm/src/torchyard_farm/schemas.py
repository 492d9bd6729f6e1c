"""Everything that the farm reads and prints for machines, by the name of its schema."""

from torchyard_farm.settings import FarmSpec
from torchyard_farm.status import Status

SCHEMAS: dict[str, object] = {"farm": FarmSpec, "farm-status": Status}
