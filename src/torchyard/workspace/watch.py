"""Record the events of a build for `status`, and pass them to listeners."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from torchyard.errors import TorchyardError
from torchyard.host.detached import create_record, has_writer
from torchyard.model.event import AnyEvent, Listener, encode_event
from torchyard.workspace.clock import current_moment
from torchyard.workspace.locations import EVENTS, home_directory
from torchyard.workspace.redact import redacting

_REMEMBERED = 20
"""How many builds to keep records of for `status`, with the error output of their jobs."""


def new_folder(file: str) -> Path:
    """Return the directory in which `status` looks for this process's build."""
    moment = current_moment().replace("-", "").replace(":", "")
    return Path(home_directory(file), "builds", f"{moment}-{os.getpid()}")


@contextmanager
def watching(folder: Path, listeners: Iterable[Listener] = ()) -> Iterator[Listener]:
    """Yield a listener that records redacted events in `folder`, and passes them to others.

    A listener that fails is dropped: a display must not end hours of work.
    """
    with ExitStack() as stack:
        active = [_recorder(stack, folder), *listeners]

        def on_event(event: AnyEvent) -> None:
            for listener in list(active):
                try:
                    listener(event)
                except (OSError, TorchyardError, SystemExit):
                    active.remove(listener)

        yield redacting(on_event)


def _recorder(stack: ExitStack, folder: Path) -> Listener:
    """Return a listener that writes events to a record, created with the first event."""
    record: list[Callable[[bytes], object]] = []

    def on_event(event: AnyEvent) -> None:
        if not record:
            _forget(folder.parent)
            folder.mkdir(parents=True, exist_ok=True)
            handle = create_record(folder / EVENTS)  # locked while this process lives
            record.append(stack.enter_context(os.fdopen(handle, "wb", buffering=0)).write)
        record[0](encode_event(event))

    return on_event


def _forget(builds: Path) -> None:
    """Remove all records except those of the last builds."""
    for folder in sorted(builds.glob("*-*/"))[: 1 - _REMEMBERED]:
        if not has_writer(folder / EVENTS):
            shutil.rmtree(folder, ignore_errors=True)
