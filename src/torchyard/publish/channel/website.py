"""A channel on a web server."""

from http import HTTPStatus

from torchyard.errors import ElsewhereError, SelectionError
from torchyard.host.fetcher import Fetcher, directory_url
from torchyard.host.http import redact_url
from torchyard.publish.channel.head import HEAD
from torchyard.publish.channel.reader import ChannelReader

_NOT_THERE = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE, HTTPStatus.FORBIDDEN)
"""Buckets without permission to list answer 403."""


def read_website(url: str) -> ChannelReader:
    """Open a channel on a web server; a missing one is an error."""
    site = _Website(url)
    if site.read(HEAD) is None:
        msg = f"there is no channel at `{site.url}`"
        raise SelectionError(msg, hint=f"name the address of the folder that has `{HEAD}`")
    return ChannelReader(site)


class _Website:
    """The files of a channel on a web server."""

    def __init__(self, url: str) -> None:
        self._root = directory_url(url)
        self._reach = Fetcher(self._root)

    @property
    def url(self) -> str:
        return redact_url(self._root).rstrip("/")

    def read(self, key: str) -> bytes | None:
        answer = self._reach.get(f"{self._root}{key}")
        if answer.found:
            return answer.data
        if answer.status in _NOT_THERE:
            return None
        msg = f"`{self.url}` answers {answer.status} to a request for `{key}`"
        hint = "check the address, and whether it needs a name and a password"
        raise ElsewhereError(msg, hint=hint, reason="network")
