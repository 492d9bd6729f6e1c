"""A file server that supports ranges, records requests, and can be slow."""

import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.support.services import LOOPBACK

_CHUNK = 64 << 10


class Served(NamedTuple):
    """A request, and the number of bytes sent."""

    method: str
    path: str
    first: int
    sent: int


class FileServer:
    """Serves a directory on a port of its own."""

    def __init__(self, root: Path, *, pause: float = 0) -> None:
        self.pause = pause
        """Seconds between two pieces of a file."""
        self.served: list[Served] = []
        self._server = ThreadingHTTPServer((LOOPBACK, 0), partial(_Handler, self, root))
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._server.server_port}"

    def sent(self, ending: str) -> int:
        """Return the number of bytes sent of files with this ending."""
        return sum(one.sent for one in list(self.served) if one.path.endswith(ending))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, server: FileServer, root: Path, *args: object) -> None:
        self.files = server
        super().__init__(*args, directory=str(root))  # type: ignore[arg-type]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name)
        pass

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            self.send_error(404)
            return
        size = path.stat().st_size
        asked = self.headers.get("Range", "")
        start, _, end = asked.removeprefix("bytes=").partition("-")
        first, last = int(start or 0), min(int(end or size), size - 1)
        if asked and first >= size:
            self.send_error(416)
            return
        self.send_response(206 if asked else 200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Length", str(last + 1 - first))
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.end_headers()
        sent = 0
        try:
            with path.open("rb") as file:
                file.seek(first)
                while piece := file.read(min(_CHUNK, last + 1 - file.tell())):
                    self.wfile.write(piece)
                    sent += len(piece)
                    time.sleep(self.files.pause)
        except ConnectionError:
            pass  # clients may go whenever they like
        finally:
            self.files.served.append(Served("GET", self.path, first, sent))
