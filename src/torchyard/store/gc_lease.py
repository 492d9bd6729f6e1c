"""The protocol between garbage collections and writers, independent of wall clocks.

A blob that a writer finds in the store may be garbage that is about to be removed. So each side
checks for the other:

- a collection writes its lease, *then* reads all manifests, then deletes;
- a writer writes its manifest, *then* looks for leases written or renewed since it
  started. If there is none, any later collection will read its manifest. If there is one, the
  writer sends missing blobs again, until the collection has ended.

A killed collection leaves its lease behind. A running one renews it, and the writer waits
for it by the monotonic clock of its own machine.
"""

import time
import uuid
from collections.abc import Callable
from datetime import datetime

from torchyard.errors import ElsewhereError
from torchyard.store.keys import SWEEPS
from torchyard.store.objects import Objects

BEAT = 5.0
"""Seconds between two renewals of a lease."""

ASLEEP = 60.0
"""Seconds without a renewal after which a collection gives up (a suspended laptop)."""

DEAD = 180.0
"""Seconds after which a lease expires: more than ASLEEP and the longest request together."""

_ACTIVE = f"{SWEEPS}active/"
_LAST = f"{SWEEPS}last"


class GcLease:
    """The lease of a running garbage collection."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._name = uuid.uuid4().hex
        self._beats = 0
        self._beaten = time.monotonic()

    def __enter__(self) -> datetime:
        """Write the lease, and return the time by the store's own clock."""
        self._objects.write(_LAST, self._name.encode())
        self._write()
        written = self._objects.head(_LAST)
        if written is None:
            msg = f"the store `{self._objects.url}` loses what is written to it"
            raise ElsewhereError(msg)
        return written.modified

    def __exit__(self, *_: object) -> None:
        self._objects.delete([f"{_ACTIVE}{self._name}"])

    def beat(self) -> None:
        """Renew the lease if it is due; call this before every deletion."""
        self._stay_awake()
        if time.monotonic() - self._beaten > BEAT:
            self._write()
            self._stay_awake()

    def _stay_awake(self) -> None:
        silent = time.monotonic() - self._beaten
        if silent > ASLEEP:
            msg = f"this collection stood still for {silent:.0f} s, so its lease may have expired"
            raise ElsewhereError(msg, hint="start it again")

    def _write(self) -> None:
        self._beats += 1
        began = time.monotonic()  # if the response is lost, the renewal counts from its sending
        self._objects.write(f"{_ACTIVE}{self._name}", f"{self._name} {self._beats}".encode())
        self._beaten = began


class GcWatch:
    """A writer's check for garbage collections, begun before its first blob."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._pulse: dict[str, tuple[str, float]] = {}
        self._before = self._look()

    def settle(self, heal: Callable[[], None]) -> None:
        """Call `heal` if collections may have removed blobs, and again when they have ended."""
        now = self._look()
        if now == self._before and not any(key.startswith(_ACTIVE) for key in now):
            return
        if self._alive():
            heal()  # others may need the result before the collection has ended
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
        """Return whether a collection is running; remove expired leases."""
        active = [key for key in self._look() if key.startswith(_ACTIVE)]
        dead = [key for key in active if time.monotonic() - self._pulse[key][1] > DEAD]
        self._objects.delete(dead)
        return len(active) > len(dead)
