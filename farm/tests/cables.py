"""A network cable between two programs, to pull out: they see what a broken network shows them."""

import contextlib
import socket
import struct
import threading
from typing import Self

from tests.services import LOOPBACK

_BLOCK = 1 << 16
_AT_ONCE = struct.pack("ii", 1, 0)
"""For SO_LINGER: a socket that is closed resets its connection."""


class Cable:
    """Passes all connections to `port` on to another one, until it is told not to."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._intact = threading.Event()
        self._intact.set()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._is_closing = False
        self._server = socket.create_server((LOOPBACK, 0))
        self.port: int = self._server.getsockname()[1]
        self.passed = 0

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closing = True
        self._intact.set()
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()
        for thread in list(self._threads):
            thread.join()

    def silence(self) -> None:
        """Let nothing through, not even the end of a connection."""
        self._intact.clear()

    def mend(self) -> None:
        """Let all through, what waited first."""
        self._intact.set()

    def cut(self) -> None:
        """End all connections, at once and for both sides; new ones can be made."""
        for one in list(self._sockets):
            self._drop(one)

    def _spawn(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._is_closing:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            self._spawn(self._connect, near)

    def _connect(self, near: socket.socket) -> None:
        self._sockets.add(near)
        self._intact.wait()
        try:
            far = socket.create_connection((LOOPBACK, self._upstream))
        except OSError:
            self._drop(near)
            return
        self._sockets.add(far)
        self._spawn(self._pass_on, near, far)
        self._spawn(self._pass_on, far, near)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_BLOCK):
                self._intact.wait()
                target.sendall(data)
                self.passed += len(data)
        self._intact.wait()
        self._drop(source)
        self._drop(target)

    def _drop(self, one: socket.socket) -> None:
        self._sockets.discard(one)
        with contextlib.suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            one.shutdown(socket.SHUT_RDWR)
        one.close()
