"""A file at an address, of which only the requested parts are read."""

from collections.abc import Callable
from urllib.parse import unquote, urlsplit

from torchyard.errors import HostError
from torchyard.host.fetcher import Fetcher
from torchyard.host.http import redact_url

_FIRST, _LARGEST = 64 << 10, 8 << 20
"""The sizes of blocks: consecutive reads get increasing sizes."""


class RemoteFile:
    """A file on a server that supports range requests, or a local one by its `file://` URL.

    `fetched` is called with the size of each block that has been read.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = unquote(urlsplit(url).path.rpartition("/")[2])
        self._fetcher = Fetcher(url)
        self.fetched: Callable[[int], None] = lambda _: None
        answer = self._fetcher.head(url)
        if not answer.found or answer.size is None:
            msg = f"`{redact_url(url)}` can't be read in parts: {answer.status}"
            raise HostError(msg, hint="check the address; or download the file and give its path")
        self.size = answer.size
        self._start, self._block = 0, b""
        self._next_size = _FIRST

    def read(self, size: int, offset: int) -> bytes:
        """Return bytes at an offset like `os.pread`: fewer at the end of the file."""
        end = min(offset + size, self.size)
        begin = offset - self._start
        if 0 <= begin <= len(self._block):
            kept = self._block[begin : begin + end - offset]
            if len(kept) >= end - offset:
                return kept
            return kept + self._fetch(offset + len(kept), end)[: end - offset - len(kept)]
        self._next_size = _FIRST
        return self._fetch(offset, end)[: end - offset] if offset < end else b""

    def _fetch(self, start: int, end: int) -> bytes:
        """Read the block with a part; it is kept until the next one is read."""
        size = min(max(end - start, self._next_size), self.size - start)
        self._next_size = min(self._next_size * 2, _LARGEST)
        try:
            self._block = self._fetcher.part(self.url, start, size)
        except FileNotFoundError as error:
            msg = f"`{redact_url(self.url)}` can no longer be read"
            raise HostError(msg, hint="it may have been replaced: try again") from error
        self._start = start
        self.fetched(len(self._block))
        return self._block
