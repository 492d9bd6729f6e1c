"""Read from HTTP servers, and from directories by `file://` URLs."""

from collections.abc import Iterator
from http import HTTPStatus
from os import stat_result
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from urllib.parse import unquote, urlsplit

from torchyard.errors import UsageError
from torchyard.host.http import LARGEST_FILE, LARGEST_PAGE, FetchResult, HttpClient

_INDEX = "index.html"
_SCHEMES = ("http", "https", "file")
_CHUNK = 1 << 20


def directory_url(target: str) -> str:
    """Return the URL of a directory or server path, with a `/` at the end."""
    scheme, separator, rest = target.partition("://")
    if not separator:
        path = Path(target)
        if not path.is_dir():
            msg = f"`{target}` is not a directory"
            raise UsageError(msg, hint="name a directory, or an address: https://…, file:///…")
        return f"{path.absolute().as_uri()}/"
    if scheme not in _SCHEMES or not _is_address(target) or (scheme == "file" and rest[:1] != "/"):
        msg = f"addresses `{scheme}://…` can't be read"
        raise UsageError(msg, hint="name https://…, http://…, file:///… or a directory")
    return target if target.endswith("/") else f"{target}/"


class Fetcher:
    """Reads pages and files; threads may share it.

    Pages from a server may link to servers, but never to files of this machine.
    """

    def __init__(self, start: str) -> None:
        """Start at a URL."""
        self._web = HttpClient()
        self._start = urlsplit(start)

    def get(self, url: str, accept: str = "*/*", most: int = LARGEST_PAGE) -> FetchResult:
        """Read a page; for a directory, its `index.html`."""
        path = self._path_of(url)
        if path is None:
            return (
                self._web.get(self._with_login(url), accept, most)
                if _is_web(url)
                else _missing(url)
            )
        about = _about(path)
        if about and S_ISDIR(about.st_mode):
            path /= _INDEX
            url = url if url.endswith("/") else f"{url}/"
        answer = _look(path, url)
        if answer.found and (answer.size or 0) > most:
            return answer._replace(status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return answer._replace(data=path.read_bytes()) if answer.found else answer

    def head(self, url: str) -> FetchResult:
        """Return the existence and size of a file, without its content."""
        path = self._path_of(url)
        if path is not None:
            return _look(path, url)
        return self._web.head(self._with_login(url)) if _is_web(url) else _missing(url)

    def pieces(self, url: str, start: int = 0, most: int = LARGEST_FILE) -> Iterator[bytes]:
        """Yield a file from byte `start` on, like `HttpClient.pieces`."""
        path = self._path_of(url)
        if path is None:
            if not _is_web(url):
                raise FileNotFoundError(url)
            yield from self._web.pieces(self._with_login(url), start, most)
            return
        if not _look(path, url).found:
            raise FileNotFoundError(url)
        with path.open("rb") as file:
            file.seek(start)
            while piece := file.read(_CHUNK):
                yield piece

    def part(self, url: str, start: int, size: int) -> bytes:
        """Read a part of a file, like `HttpClient.part`."""
        path = self._path_of(url)
        if path is None:
            if not _is_web(url):
                raise FileNotFoundError(url)
            return self._web.part(self._with_login(url), start, size)
        with path.open("rb") as file:
            file.seek(start)
            return file.read(size)

    def _with_login(self, url: str) -> str:
        """Return a URL with the start URL's user and password if it is on the same host."""
        parts, (name, _, host) = urlsplit(url), self._start.netloc.rpartition("@")
        is_there = (parts.scheme, parts.netloc) == (self._start.scheme, host)
        return parts._replace(netloc=self._start.netloc).geturl() if name and is_there else url

    def _path_of(self, url: str) -> Path | None:
        parts = urlsplit(url)
        is_here = parts.scheme == self._start.scheme == "file"
        return Path(unquote(parts.path)) if is_here else None


def _is_address(text: str) -> bool:
    try:
        return urlsplit(text).port != 0
    except ValueError:
        return False


def _is_web(url: str) -> bool:
    return url.startswith(("https://", "http://"))


def _missing(url: str) -> FetchResult:
    return FetchResult(HTTPStatus.NOT_FOUND, url)


def _look(path: Path, url: str) -> FetchResult:
    about = _about(path)
    if about is None or not S_ISREG(about.st_mode):
        return _missing(url)
    return FetchResult(HTTPStatus.OK, url, size=about.st_size)


def _about(path: Path) -> stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError):  # missing, or an invalid file name
        return None
