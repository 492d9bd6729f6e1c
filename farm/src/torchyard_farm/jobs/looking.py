"""What workers have told of their machines."""

from contextlib import suppress
from pathlib import Path

import msgspec

from torchyard_farm.jobs.booking import Look

LOOK = "look"
"""What a master asks a worker again and again, and what it is told unasked when one connects."""

LOOKS = "machines.json"
"""The file of a master in which is what workers told last."""

WORK = "work"
"""The directory of a worker in which the jobs of all its slots are."""


def read_look(told: str) -> Look | None:
    """What a worker told; None if it is of another version, and tells nothing that we know."""
    try:
        return msgspec.json.decode(told, type=Look)
    except msgspec.DecodeError:
        return None


def read_looks(master: Path) -> dict[str, Look]:
    """What the workers of a master told last."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode((master / LOOKS).read_bytes(), type=dict[str, Look])
    return {}
