"""A channel as its users know it: by its address on the web."""

from http import HTTPStatus

from torchyard.errors import ElsewhereError, SelectionError
from torchyard.host.fetcher import Fetcher, directory_url
from torchyard.host.http import redact_url
from torchyard.publish.channel.head import HEAD
from torchyard.publish.channel.reader import ChannelReader

_NOT_THERE = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE, HTTPStatus.FORBIDDEN)
"""Buckets that may not be listed answer 403."""


def read_website(url: str) -> ChannelReader:
    """Open a channel that a web server has; one that is not there is an error."""
    site = _Website(url)
    if site.read(HEAD) is None:
        msg = f"there is no channel at `{site.url}`"
        raise SelectionError(msg, hint=f"name the address of the folder that has `{HEAD}`")
    return ChannelReader(site)


class _Website:
    """The files of a channel, as a web server has them."""

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
        msg = f"`{self.url}` answers {answer.status} when it is asked for `{key}`"
        hint = "is the address right, and does it want a name and a password?"
        raise ElsewhereError(msg, hint=hint, reason="network")
