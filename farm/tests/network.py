"""A TCP proxy that simulates a broken network between two programs."""

import contextlib
import socket
import struct
import threading
from typing import Self

from tests.support.services import LOOPBACK

_BLOCK = 1 << 16
_AT_ONCE = struct.pack("ii", 1, 0)
"""For SO_LINGER: a socket that is closed resets its connection."""


class Cable:
    """Forwards all connections to `port` to another one, until it is cut."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._intact = _intact()
        self._forgotten: list[threading.Event] = []
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._server = socket.create_server((LOOPBACK, 0))
        self.port: int = self._server.getsockname()[1]

    def __enter__(self) -> Self:
        self._begin(threading.Thread(target=self._accept))
        return self

    def __exit__(self, *_: object) -> None:
        for event in (self._intact, *self._forgotten):
            event.set()
        self._server.shutdown(socket.SHUT_RDWR)
        while self._threads:
            self.cut()
            self._threads[-1].join(0.1)
            self._threads = [thread for thread in self._threads if thread.is_alive()]
        self._server.close()

    def silence(self) -> None:
        """Drop everything silently, also the end of a connection."""
        self._intact.clear()

    def mend(self) -> None:
        """Forward again, delayed data first."""
        self._intact.set()

    def forget(self) -> None:
        """Drop everything on existing connections for ever; new ones work."""
        self._intact.clear()
        self._forgotten.append(self._intact)
        self._intact = _intact()

    def cut(self) -> None:
        """Reset all connections; new ones work."""
        for one in list(self._sockets):
            _end(one)

    def _begin(self, thread: threading.Thread) -> None:
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # until it is closed
            while True:
                near, _ = self._server.accept()
                self._begin(threading.Thread(target=self._connect, args=(near,)))

    def _connect(self, near: socket.socket) -> None:
        """Forward one connection in both directions; only this thread closes its sockets."""
        with near, contextlib.suppress(OSError):
            self._sockets.add(near)
            intact = self._intact
            intact.wait()
            with socket.create_connection((LOOPBACK, self._upstream)) as far:
                self._sockets.add(far)
                back = threading.Thread(target=_pass_on, args=(far, near, intact))
                back.start()
                _pass_on(near, far, intact)
                back.join()
                self._sockets.discard(far)
        self._sockets.discard(near)


def _intact() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


def _pass_on(source: socket.socket, target: socket.socket, intact: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_BLOCK):
            intact.wait()
            target.sendall(data)
    intact.wait()
    _end(source)
    _end(target)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        one.shutdown(socket.SHUT_RDWR)
