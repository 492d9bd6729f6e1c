"""Where things are: the store, and the directory that torchyard works in."""

import os

from torchyard.host.files import dirname, join
from torchyard.model.yard import Yard
from torchyard.store.store import Store

HOME = ".torchyard"
"""The directory beside the file in which everything is that torchyard itself writes."""


def absolute(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - strings, see host.files


def home_of(file: str) -> str:
    return join(dirname(absolute(file)), HOME)


def open_store(url: str | None, file: str, yard: Yard | None = None, *, make: bool = True) -> Store:
    """Open the store that is named on the command line, else the file's."""
    if url is None:
        from torchyard.config.load import load_yard

        url = (yard or load_yard(file)).store
        if "://" not in url:
            url = join(dirname(absolute(file)), url)
    return Store.at(url, make=make)


def cache_of(file: str, yard: Yard | None) -> str | None:
    """The compile cache of a file; a directory is beside it."""
    cache = yard.toolchain.cache if yard and yard.toolchain else None
    return join(dirname(absolute(file)), cache) if cache and "://" not in cache else cache
