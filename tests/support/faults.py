"""A proxy that fails as networks and servers fail, on request.

It stands in front of an S3 server. A client signs the proxy's host and port; the proxy passes
the Host header on as it came, so the signature stays valid.
"""

import collections
import contextlib
import enum
import http.client
import select
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self, assert_never
from urllib.parse import urlsplit

from tests.support.services import LOOPBACK

BLOCK = 64 * 1024
PATIENCE = 300


class Fault(enum.Enum):
    """The outcome of a request."""

    NONE = enum.auto()
    """It's passed on, and so is the answer."""
    SLOW_DOWN = enum.auto()
    """503, as S3 says it; it isn't passed on."""
    INTERNAL_ERROR = enum.auto()
    """500, as S3 says it; it isn't passed on."""
    CONFLICT = enum.auto()
    """409, as S3 says it while another request writes the same object; it isn't passed on."""
    SILENCE = enum.auto()
    """It's read, not passed on, and never answered; the connection stays open."""
    LOSE_REQUEST = enum.auto()
    """The connection is cut; it isn't passed on, so nothing was written."""
    TEAR_REQUEST = enum.auto()
    """Its head and half of its body are passed on, then all is cut; without a body, nothing is."""
    LOSE_ANSWER = enum.auto()
    """The request is passed on, and the connection cut: the write succeeds unconfirmed."""
    CUT_ANSWER = enum.auto()
    """It's passed on, and the connection is cut in the middle of the answer's body, or head."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The request that a plan decides on; numbers count from 1, over all connections."""

    number: int
    method: str
    path: str
    size: int
    """What it says that its body has."""


Plan = Callable[[Request], Fault]


def no_fault(_request: Request) -> Fault:
    return Fault.NONE


def only(fault: Fault, *, method: str, times: int = 1) -> Plan:
    """Plan that the next `times` requests of this method fail, and nothing else."""
    left = times

    def plan(request: Request) -> Fault:
        nonlocal left
        if request.method != method or left == 0:
            return Fault.NONE
        left -= 1
        return fault

    return plan


class FaultyProxy:
    """A proxy on a port of its own; `plan` decides about each request, one at a time.

    With the `port` of one that has ended, another takes its place.
    """

    def __init__(self, upstream: str, port: int = 0) -> None:
        self.plan: Plan = no_fault
        self.requests: list[Request] = []
        self.errors: list[BaseException] = []
        self.closing = threading.Event()
        self.upstream = urlsplit(upstream).netloc
        self._lock = threading.Lock()
        self._server = _Server(self, port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def endpoint(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def counts(self) -> collections.Counter[str]:
        """Return the number of requests by method."""
        return collections.Counter(request.method for request in self.requests)

    def decide(self, method: str, path: str, size: int) -> Fault:
        with self._lock:
            number = len(self.requests) + 1
            request = Request(number=number, method=method, path=path, size=size)
            self.requests.append(request)
            return self.plan(request)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()  # waits for the connections' threads
        if self.errors and error is None:
            msg = "the proxy itself failed"
            raise BaseExceptionGroup(msg, self.errors)


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, proxy: FaultyProxy, port: int) -> None:
        self.proxy = proxy
        self.connections: set[socket.socket] = set()
        super().__init__((LOOPBACK, port), _Handler)

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        connection, address = super().get_request()
        self.connections.add(connection)
        return connection, address

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        assert isinstance(request, socket.socket)
        self.connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def proxy(self) -> FaultyProxy:
        assert isinstance(self.server, _Server)
        return self.server.proxy

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            pass  # clients may go whenever they like
        except BaseException as error:  # noqa: BLE001 (for the test to see)
            self.proxy.errors.append(error)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name)
        pass

    def answer(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        fault = self.proxy.decide(self.command, self.path, size)
        body = self.read(size // 2) if fault is Fault.TEAR_REQUEST else self.read_body()
        match fault:
            case Fault.NONE:
                self.wfile.write(self.pass_on(body)[0])
            case Fault.SLOW_DOWN:
                self.refuse(503, "SlowDown")
            case Fault.INTERNAL_ERROR:
                self.refuse(500, "InternalError")
            case Fault.CONFLICT:
                self.refuse(409, "ConditionalRequestConflict")
            case Fault.SILENCE:
                self.wait_for_hang_up()
            case Fault.LOSE_REQUEST:
                self.close_connection = True
            case Fault.TEAR_REQUEST:
                self.close_connection = True
                with self.passed_on(body) if body else contextlib.nullcontext():
                    pass
            case Fault.LOSE_ANSWER:
                self.pass_on(body)
                self.close_connection = True
            case Fault.CUT_ANSWER:
                answer, head = self.pass_on(body)
                start = head if head < len(answer) else 0  # without a body, cut the head
                self.wfile.write(answer[: (start + len(answer)) // 2])
                self.close_connection = True
            case _:
                assert_never(fault)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815 (their names)

    def read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return b"".join(chunks)

    def read(self, size: int) -> bytes:
        data = self.rfile.read(size)
        if len(data) < size:
            raise ConnectionAbortedError
        return data

    @contextlib.contextmanager
    def passed_on(self, body: bytes) -> Iterator[http.client.HTTPConnection]:
        """Send a request to the server; the connection ends with the context."""
        upstream = http.client.HTTPConnection(self.proxy.upstream, timeout=PATIENCE)
        with contextlib.closing(upstream):
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in {"connection", "expect"}:
                    upstream.putheader(name, value)
            upstream.endheaders(body, encode_chunked="Transfer-Encoding" in self.headers)
            yield upstream

    def pass_on(self, body: bytes) -> tuple[bytes, int]:
        """Return the server's response as it is to be sent, and the size of its head."""
        with self.passed_on(body) as upstream:
            response = upstream.getresponse()
            content = response.read()
        lines = [f"HTTP/1.1 {response.status} {response.reason}"]
        lines += [
            f"{name}: {value}"
            for name, value in response.getheaders()
            if name.lower() != "connection"
        ]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        if response.chunked:
            blocks = [content[i : i + BLOCK] for i in range(0, len(content), BLOCK)]
            content = b"".join(b"%x\r\n%b\r\n" % (len(block), block) for block in [*blocks, b""])
        return head + content, len(head)

    def refuse(self, status: int, code: str) -> None:
        body = f"<Error><Code>{code}</Code><Message>As planned.</Message></Error>".encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def wait_for_hang_up(self) -> None:
        self.close_connection = True
        while not self.proxy.closing.is_set():
            if select.select([self.connection], [], [], 0.05)[0]:
                return
