"""Claims: which process works on which job, so that other processes choose another job.

Claims only save work: a job that is run twice still has one result.
"""

import os
import platform
import threading
import time
import uuid
from contextlib import suppress
from typing import Annotated, Self

import msgspec

from torchyard.errors import ElsewhereError
from torchyard.host.process_id import is_local_birth, is_running, is_same_process, process_birth
from torchyard.model.values import UNDECODABLE, Value
from torchyard.store.keys import claim_key
from torchyard.store.objects import Objects

BEAT = 10.0
"""Seconds between two heartbeats of a claim."""

DEAD = 60.0
"""Seconds without a heartbeat after which a claim may be taken over."""


class Owner(Value, kw_only=True):
    """The holder of a claim. `name` is unique, `beat` changes with every heartbeat."""

    name: str
    host: str
    pid: Annotated[int, msgspec.Meta(gt=0, lt=1 << 31)]
    born: str = ""
    beat: int = 0

    @property
    def is_gone(self) -> bool:
        """Whether the process ran on this system and has ended."""
        if self.host != platform.node() or not is_local_birth(self.born):
            return False
        return not (is_running(self.pid) and is_same_process(self.pid, self.born))


class Claim:
    """This process's claim on one job, with heartbeats until it is released."""

    def __init__(self, objects: Objects, fingerprint: str) -> None:
        self._objects = objects
        self._key = claim_key(fingerprint)
        pid = os.getpid()
        self._owner = Owner(
            name=uuid.uuid4().hex, host=platform.node(), pid=pid, born=process_birth(pid)
        )
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def take(self) -> Owner | None:
        """Claim the job; return the present holder if there is one."""
        while not self._objects.create(self._key, msgspec.json.encode(self._owner)):
            holder = read_owner(self._objects, self._key)
            if holder is not None and not holder.is_gone:
                return holder
            self._objects.delete([self._key])
        self._thread.start()
        return None

    def _keep(self) -> None:
        beat = 0
        while not self._released.wait(BEAT):
            beat += 1
            mine = msgspec.structs.replace(self._owner, beat=beat)
            with suppress(ElsewhereError):  # the next heartbeat may succeed
                self._objects.write(self._key, msgspec.json.encode(mine))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Release the claim, unless another process has taken it over."""
        self._released.set()
        if self._thread.ident is not None:
            self._thread.join()
            with suppress(ElsewhereError):
                holder = read_owner(self._objects, self._key)
                if holder is not None and holder.name == self._owner.name:
                    self._objects.delete([self._key])


def read_owner(objects: Objects, key: str) -> Owner | None:
    """Return the holder of a claim; None if there is none, or the claim can't be read."""
    data = objects.read(key)
    if data is not None:
        with suppress(*UNDECODABLE):
            return msgspec.json.decode(data, type=Owner)
    return None


class ClaimMonitor:
    """Tracks heartbeats of other processes' claims by this machine's monotonic clock."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._seen: dict[str, tuple[Owner, float]] = {}

    def holder(self, fingerprint: str) -> Owner | None:
        """Return the holder of a claim; remove the claim if the holder is dead."""
        key = claim_key(fingerprint)
        owner = read_owner(self._objects, key)
        if owner is None:
            self._seen.pop(key, None)
            return None
        holder, since = self._seen.get(key, (None, 0.0))
        if holder != owner:
            since = time.monotonic()
            self._seen[key] = (owner, since)
        if owner.is_gone or time.monotonic() - since > DEAD:
            self._objects.delete([key])
            return None
        return owner
