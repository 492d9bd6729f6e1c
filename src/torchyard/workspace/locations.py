"""Locations of a file's stores, channels, caches and work directory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote

from torchyard.errors import SelectionError
from torchyard.host.files import HOME, absolute, dirname, join
from torchyard.model.config import Config
from torchyard.model.quantity import parse_size
from torchyard.model.suggest import did_you_mean
from torchyard.store.store import Store

if TYPE_CHECKING:
    from torchyard.publish.channel.channel import Channel
    from torchyard.publish.channel.reader import ChannelReader

EVENTS = "events.jsonl"
"""The name of the file in which a build records its events."""


def home_directory(file: str) -> str:
    return join(dirname(absolute(file)), HOME)


def made_home(file: str) -> str:
    """Create the home directory, and return it."""
    os.makedirs(home_directory(file), exist_ok=True)  # noqa: PTH103 - strings, see host.files
    return home_directory(file)


def work_directory(file: str) -> str:
    """Return the directory of the jobs' directories; by default in the home directory."""
    return join(home_directory(file), "work")


def open_store(
    url: str | None, file: str, config: Config | None = None, *, make: bool = True
) -> Store:
    """Open the store named on the command line, or the file's."""
    if url is None:
        from torchyard.config.load import load_config

        url = (config or load_config(file)).store
        if "://" not in url:
            url = join(dirname(absolute(file)), url)
    return Store.at(url, make=make)


def open_channel(path: str, file: str, *, make: bool = False) -> "Channel":
    """Open a channel: by its name in the file, its address, or its directory."""
    from torchyard.publish.channel.channel import Channel

    return Channel.at(channel_url(path, file), make=make)


def open_damaged_channel(path: str, file: str) -> "Channel":
    """Open a channel whose head may be missing."""
    from torchyard.publish.channel.channel import Channel
    from torchyard.store.objects import Objects

    return Channel(Objects(channel_url(path, file), make=False))


def read_channel(path: str, file: str) -> "ChannelReader":
    """Open a channel for reading; it may be on a web server."""
    url = channel_url(path, file)
    if not url.startswith(("https://", "http://")):
        return open_channel(path, file)
    from torchyard.publish.channel.website import read_website

    return read_website(url)


@contextmanager
def filling(url: str, *, dry_run: bool) -> Iterator["Channel"]:
    """Open a channel, or create it; for a dry run, use an empty temporary one instead."""
    from tempfile import TemporaryDirectory

    from torchyard.publish.channel.channel import Channel

    if not dry_run or Channel.is_at(url):
        yield Channel.at(url, make=not dry_run)
        return
    with TemporaryDirectory(prefix="dry-run-") as empty:
        yield Channel.at(empty, make=True)


def channel_url(path: str, file: str) -> str:
    """Return the address of a channel; directories in the file are relative to the file."""
    if "/" in path or path in (".", ".."):
        return path
    from torchyard.config.load import load_config

    directory = f"for a directory write ./{path}"
    if not os.path.exists(file):  # noqa: PTH110 - strings, see host.files
        msg = f"`{path}` is read as a channel of `{file}`, which does not exist"
        raise SelectionError(msg, hint=f"{directory}; `-f FILE` names another file")
    channels = load_config(file).channels
    if path not in channels:
        msg = f"`{file}` has no channel `{path}`"
        hint = f"{directory}; {did_you_mean(path, channels)}" if channels else directory
        raise SelectionError(msg, hint=hint)
    url = channels[path].url
    return url if "://" in url else join(dirname(absolute(file)), url)


def installer_url(path: str) -> str:
    """Return a channel's address in the form for installers."""
    from pathlib import Path

    return path if "://" in path else Path(absolute(path)).as_uri()


def is_same(first: str, other: str) -> bool:
    """Return whether two addresses mean the same directory or bucket."""
    return _plain(first) == _plain(other)


def _plain(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if separator and scheme != "file":
        return url.rstrip("/")
    return os.path.realpath(unquote(rest) if separator else url)


def copies_limit(config: Config | None) -> int:
    """Return how many bytes of the store to keep on this machine."""
    return parse_size(config.copies) if config and config.copies else 0


def compile_cache_url(file: str, config: Config | None) -> str | None:
    """Return the compile cache of a file; its directory is relative to the file."""
    cache = config.toolchain.cache if config and config.toolchain else None
    return join(dirname(absolute(file)), cache) if cache and "://" not in cache else cache
