"""The only HTTP client: fetches pages and files, with retries.

A missing page is a result. Only a server without an answer is an error.
"""

import os
import re
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import closing
from errno import EFBIG
from http import HTTPStatus
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import urljoin, urlsplit

import urllib3
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import HTTPError, MaxRetryError, ProxyError
from urllib3.util import Retry, Timeout

from torchyard.errors import ElsewhereError, TorchyardError
from torchyard.host.network_faults import network_error
from torchyard.host.network_settings import network_settings
from torchyard.version import __version__

READ_TIMEOUT = 30.0
"""Seconds without a byte of a response after which a request counts as lost."""

MAX_TRIES = 6
"""Maximum consecutive failures of a request."""

LONGEST_WAIT = 20.0
"""Longest wait in seconds before a retry, regardless of `Retry-After`."""

LARGEST_PAGE = 512 << 20
LARGEST_FILE = 8 << 30
"""Maximum size of a file, twice that of any package, in case a server never ends."""
CONNECTIONS = 8
_CHUNK = 1 << 20
_BUSY = frozenset((429, 500, 502, 503, 504))
_NO_HEAD = frozenset((403, 405, 501))
"""Statuses of servers that support GET but not HEAD."""
_REFUSALS = {
    401: "its server requires another user name or password (401)",
    407: "the proxy requires another user name or password (407)",
}
_NOT_FOUND = re.compile("No solution found|Could not find a version|No matching distribution")
_REDIRECTIONS = 10
_AGENT = {"User-Agent": f"torchyard/{__version__}"}


class _Retry(Retry):
    """Honours `Retry-After`, up to a limit, and reads no body of a response that is retried."""

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: urllib3.BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        if response is not None:
            response.close()  # else urllib3 reads it to its end, which may never come
        return super().increment(method, url, response, error, _pool, _stacktrace)

    def get_retry_after(self, response: urllib3.BaseHTTPResponse) -> float | None:
        wait = super().get_retry_after(response)
        return None if wait is None else min(wait, LONGEST_WAIT)


_RETRY = _Retry(
    total=MAX_TRIES,
    redirect=False,
    backoff_factor=0.1,
    backoff_max=5,
    backoff_jitter=0.2,
    status_forcelist=_BUSY,
    allowed_methods=("GET", "HEAD"),
    raise_on_status=False,
)


class FetchResult(NamedTuple):
    """The answer of a server, or a directory, to a URL."""

    status: int
    url: str
    """The URL after all redirects."""
    media: str = ""
    """The media type, such as `text/html`; empty for files of a directory."""
    size: int | None = None
    data: bytes = b""
    date: str = ""
    """The server's time, in HTTP's format."""

    @property
    def found(self) -> bool:
        return self.status == HTTPStatus.OK


def redact_url(url: str) -> str:
    """Return a printable URL: without user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl()


class HttpClient:
    """A client with a pool of connections; threads may share it.

    `tries` is the maximum number of attempts if a server does not answer, `patience` the timeout of
    a connection in seconds.
    """

    def __init__(self, tries: int = MAX_TRIES, patience: float = 10) -> None:
        self._retry = _RETRY.new(total=tries - 1)
        self._timeout = Timeout(connect=patience, read=READ_TIMEOUT)
        self._settings = network_settings()
        trusted = self._settings.authorities or None
        self._direct = urllib3.PoolManager(maxsize=CONNECTIONS, ca_certs=trusted)
        self._proxies = {
            url: urllib3.ProxyManager(
                url,
                maxsize=CONNECTIONS,
                ca_certs=trusted,
                proxy_headers=_basic("Proxy-Authorization", self._settings.login_for(url)),
            )
            for url in self._settings.proxies.values()
            if url.startswith("http")
        }

    def get(self, url: str, accept: str = "*/*", most: int = LARGEST_PAGE) -> FetchResult:
        """Read a page; status 413 if it is larger than `most` bytes."""
        headers = {"Accept": accept, "Accept-Encoding": "gzip"}
        failures = 0
        while True:
            with closing(self._ask("GET", url, headers)) as response:
                answer = response.answer()
                if not answer.found:
                    return answer
                try:
                    data = _read(response.raw, most)
                except HTTPError as error:
                    _pause(url, error, failures)
                    failures += 1
                    continue
            too_large = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            return answer._replace(status=too_large) if data is None else answer._replace(data=data)

    def head(self, url: str) -> FetchResult:
        """Return status and size without the content."""
        headers = {"Accept-Encoding": "identity"}
        with closing(self._ask("HEAD", url, headers)) as response:
            answer = response.answer()
        if answer.status not in _NO_HEAD:
            return answer
        with closing(self._ask("GET", url, {**headers, "Range": "bytes=0-0"})) as response:
            answer = response.answer()
            total = response.raw.headers.get("Content-Range", "").rpartition("/")[2]
        if answer.status != HTTPStatus.PARTIAL_CONTENT:
            return answer
        return answer._replace(status=HTTPStatus.OK, size=int(total) if total.isdecimal() else None)

    def pieces(self, url: str, start: int = 0, most: int = LARGEST_FILE) -> Iterator[bytes]:
        """Yield a file from byte `start` on; raise FileNotFoundError if there is none.

        An interrupted stream resumes after its last byte, if the server supports ranges. A file of
        more than `most` bytes is an OSError, EFBIG, regardless of the declared length.
        """
        at, failures = start, 0
        while True:
            headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={at}-"} if at else {})}
            with closing(self._ask("GET", url, headers)) as response:
                if response.raw.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                    return
                if response.raw.status not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
                    raise FileNotFoundError(redact_url(url))
                skip = at if response.raw.status == HTTPStatus.OK else 0
                try:
                    for piece in response.raw.stream(_CHUNK, decode_content=False):
                        new = piece[skip:]
                        skip -= len(piece) - len(new)
                        if new:
                            at, failures = at + len(new), 0
                            if at > most:
                                raise OSError(EFBIG, os.strerror(EFBIG), redact_url(url))
                            yield new
                except HTTPError as error:
                    _pause(url, error, failures)
                    failures += 1
                else:
                    return

    def part(self, url: str, start: int, size: int) -> bytes:
        """Read a part of a file; raise FileNotFoundError if there is no such part."""
        headers = {"Accept-Encoding": "identity", "Range": f"bytes={start}-{start + size - 1}"}
        failures = 0
        while True:
            with closing(self._ask("GET", url, headers)) as response:
                if response.raw.status == HTTPStatus.OK:
                    raise _unreachable(url, "its server does not support range requests")
                if response.raw.status != HTTPStatus.PARTIAL_CONTENT:
                    raise FileNotFoundError(redact_url(url))
                try:
                    data = _read(response.raw, size)
                except HTTPError as error:
                    _pause(url, error, failures)
                    failures += 1
                    continue
            if data is None or len(data) != size:
                raise _unreachable(url, "its server sends another range than requested")
            return data

    def _ask(self, method: str, url: str, headers: Mapping[str, str]) -> "_Response":
        """Send a request and follow redirects."""
        for _ in range(_REDIRECTIONS):
            response = self._ask_here(method, url, headers)
            target = response.get_redirect_location()
            if not target:
                return _Response(response, url)
            response.close()  # its body may be endless
            url = _followed(url, target)
        raise _unreachable(url, "it redirects too often")

    def _ask_here(
        self, method: str, url: str, headers: Mapping[str, str]
    ) -> urllib3.BaseHTTPResponse:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        bare = parts._replace(netloc=host, fragment="").geturl()
        proxy, login = self._settings.proxy_for(url), self._settings.login_for(url)
        if proxy and proxy not in self._proxies:
            raise _unreachable(url, f"`{redact_url(proxy)}` is not an HTTP proxy")
        manager: urllib3.PoolManager = self._proxies.get(proxy, self._direct)
        try:
            response = manager.request(
                method,
                bare,
                headers={**_AGENT, **headers, **_basic("Authorization", login)},
                preload_content=False,
                redirect=False,
                retries=self._retry,
                timeout=self._timeout,
            )
        except (HTTPError, ValueError) as error:
            raise _unreachable(url, error) from error
        refusal = _REFUSALS.get(response.status)
        if response.status in _BUSY or refusal:
            _Response(response, url).close()
            raise _unreachable(url, refusal or f"it answers {response.status} repeatedly")
        return response


class _Response(NamedTuple):
    """An open response, and its URL after redirects."""

    raw: urllib3.BaseHTTPResponse
    url: str

    def answer(self) -> FetchResult:
        headers = self.raw.headers
        length = headers.get("Content-Length", "")
        media = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        size = int(length) if length.isdecimal() else None
        url, date = self.url.partition("#")[0], headers.get("Date", "")
        return FetchResult(self.raw.status, url, media, size, date=date)

    def close(self) -> None:
        """Close the response; reuse its connection if it was read completely."""
        self.raw.close()
        self.raw.release_conn()


def _basic(header: str, login: str) -> dict[str, str]:
    """Return the header with a user and password for a server or proxy."""
    return {header: f"Basic {b64encode(login.encode()).decode()}"} if login else {}


def _followed(url: str, target: str) -> str:
    """Return the target of a redirect; send user and password only to the same host."""
    before, after = urlsplit(url), urlsplit(urljoin(url, target))
    if after.scheme not in ("https", "http"):
        raise _unreachable(url, "it redirects to an address that is not HTTP")
    if (before.scheme, after.scheme) == ("https", "http"):
        raise _unreachable(url, "it redirects from https to http, which is not secure")
    if (after.scheme, after.netloc) == (before.scheme, before.netloc.rpartition("@")[2]):
        after = after._replace(netloc=before.netloc)
    return after.geturl()


def _read(response: urllib3.BaseHTTPResponse, most: int) -> bytes | None:
    """Return a whole page, or None if it is larger than `most` bytes."""
    parts: list[bytes] = []
    for piece in response.stream(_CHUNK, decode_content=True):
        most -= len(piece)
        if most < 0:
            return None
        parts.append(piece)
    return b"".join(parts)


def _pause(url: str, error: HTTPError, attempt: int) -> None:
    """Wait before a retry; raise after the last attempt."""
    if attempt + 1 >= MAX_TRIES:
        raise _unreachable(url, error) from error
    time.sleep(min(5.0, 0.1 * 2**attempt))


def _unreachable(url: str, error: Exception | str) -> TorchyardError:
    reason = error.reason if isinstance(error, MaxRetryError) and error.reason else error
    text = str(reason)
    if isinstance(reason, Exception):
        text = re.sub(r" \(_ssl\.c:\d+\)|['\"]\)*$", "", text.rpartition("): ")[2])
    text = f"the proxy fails: {text}" if isinstance(reason, ProxyError) else text
    msg = f"`{redact_url(url)}` could not be read: {text}"
    return network_error(msg) or ElsewhereError(msg, reason="network")


def ask_index(index: str) -> FetchResult:
    """Request a project from an index, once; an index without the project answers, too."""
    return HttpClient(tries=1, patience=3).head(f"{index.rstrip('/')}/torch/")


def explain_fetch(output: str) -> TorchyardError | None:
    """Return why pip, uv or git could not fetch, from its output; None if it could.

    pip and uv report an index that refuses them as empty, so the indexes are queried.
    """
    found = network_error(output)
    if not found and not _NOT_FOUND.search(output):
        return None
    for index in network_settings().indexes:
        try:
            if index.startswith("http"):
                ask_index(index)
        except TorchyardError as cause:
            hint = cause.diagnostics[0].hint
            return type(cause)(f"{cause}\n{output}", hint=hint, reason=cause.reason)
    return found
