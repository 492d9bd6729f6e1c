"""The result of assembling a package."""

from pathlib import Path
from typing import NamedTuple


class Assembled(NamedTuple):
    """A package, and the archive of its debug information, if any."""

    package: Path
    debug: Path | None

    @property
    def files(self) -> list[Path]:
        return [path for path in self if path is not None]
