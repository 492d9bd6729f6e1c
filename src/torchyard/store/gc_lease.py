"""How a garbage collection and writers keep out of each other's way, whatever clocks say.

A blob that a writer finds in the store may be garbage that is about to be removed. So:

- a sweep announces itself, *then* reads all manifests, then deletes;
- a writer writes its manifest, *then* looks for sweeps that began or went on since it started.
  If there was none, any later sweep will read its manifest. If there was one, the writer sends
  again what is gone, until the sweep has ended.

A sweep that was killed leaves its announcement behind. A living one keeps changing it, and the
writer waits no longer than the steady clock of its own machine says that it should.
"""

import time
import uuid
from collections.abc import Callable
from datetime import datetime

from torchyard.errors import ElsewhereError
from torchyard.store.keys import SWEEPS
from torchyard.store.objects import Objects

BEAT = 5.0
"""Seconds between two signs of life of a sweep."""

ASLEEP = 60.0
"""Seconds after which a sweep that gave no sign of life, such as on a closed laptop, gives up."""

DEAD = 180.0
"""Seconds after which others take it for dead: longer than it and its last request can last."""

_ACTIVE = f"{SWEEPS}active/"
_LAST = f"{SWEEPS}last"


class GcLease:
    """The announcement of a sweep, for as long as it goes on."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._name = uuid.uuid4().hex
        self._beats = 0
        self._beaten = time.monotonic()

    def __enter__(self) -> datetime:
        """Announce the sweep, and tell what time it is by the store's own clock."""
        self._objects.write(_LAST, self._name.encode())
        self._write()
        told = self._objects.head(_LAST)
        if told is None:
            msg = f"the store `{self._objects.url}` forgets what is written to it"
            raise ElsewhereError(msg)
        return told.modified

    def __exit__(self, *_: object) -> None:
        self._objects.delete([f"{_ACTIVE}{self._name}"])

    def beat(self) -> None:
        """Say that the sweep lives; to be called before everything that it deletes."""
        self._stay_awake()
        if time.monotonic() - self._beaten > BEAT:
            self._write()
            self._stay_awake()

    def _stay_awake(self) -> None:
        silent = time.monotonic() - self._beaten
        if silent > ASLEEP:
            msg = f"this sweep stood still for {silent:.0f} s, and others may take it for dead"
            raise ElsewhereError(msg, hint="start it again")

    def _write(self) -> None:
        self._beats += 1
        began = time.monotonic()  # a sign whose answer got lost counts from when it was given
        self._objects.write(f"{_ACTIVE}{self._name}", f"{self._name} {self._beats}".encode())
        self._beaten = began


class GcWatch:
    """A writer's look-out for sweeps, from before its first blob on."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._pulse: dict[str, tuple[str, float]] = {}
        self._before = self._look()

    def settle(self, heal: Callable[[], None]) -> None:
        """Put back what sweeps removed, in the end when none can remove any more of it."""
        now = self._look()
        if now == self._before and not any(key.startswith(_ACTIVE) for key in now):
            return
        if self._alive():
            heal()  # others may want the result before the sweep has ended
            while self._alive():
                time.sleep(min(1.0, BEAT))
        heal()

    def _look(self) -> dict[str, str]:
        seen = {meta.key: meta.tag for meta in self._objects.list(SWEEPS)}
        for key, tag in seen.items():
            if self._pulse.get(key, ("", 0.0))[0] != tag:
                self._pulse[key] = (tag, time.monotonic())
        return seen

    def _alive(self) -> bool:
        """Whether a sweep goes on; the announcements of dead ones are taken away."""
        active = [key for key in self._look() if key.startswith(_ACTIVE)]
        dead = [key for key in active if time.monotonic() - self._pulse[key][1] > DEAD]
        self._objects.delete(dead)
        return len(active) > len(dead)
