"""A page: bytes at an address of a channel, and their content type."""

from enum import StrEnum
from typing import NamedTuple


class Media(StrEnum):
    """The content type of an object."""

    HTML = "text/html; charset=utf-8"
    SIMPLE_JSON = "application/vnd.pypi.simple.v1+json"
    JSON = "application/json"
    TEXT = "text/plain; charset=utf-8"
    BYTES = "application/octet-stream"
    ZSTD = "application/zstd"


class Page(NamedTuple):
    """A mutable object. `path` is relative to the channel."""

    path: str
    data: bytes
    media: Media
