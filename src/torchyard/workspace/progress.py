"""Progress of long reads and uploads, shown by the caller's functions."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # slow to import
    from torchyard.package.contents import Contents


class Meter(Protocol):
    """Opens a progress display for bytes or another unit, to be called with each finished share."""

    def __call__(
        self, what: str, total: int, unit: str = "", /
    ) -> AbstractContextManager[Callable[[int], None]]: ...


@contextmanager
def no_meter(_what: str, _total: int, _unit: str = "", /) -> Iterator[Callable[[int], None]]:
    """Show no progress."""
    yield lambda _done: None


def read_metered(path: Path, meter: Meter) -> "Contents":
    """Read a package, and report the progress to a meter."""
    from torchyard.package.read import read_package

    size = path.stat().st_size if path.is_file() else 0
    with meter(f"reading {path.name}", size) as progress:
        return read_package(path, progress=progress)


def ignore_line(_line: str) -> None:
    """Show no line."""
