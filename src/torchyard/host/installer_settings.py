"""The caller's own settings of pip and uv: how packages are fetched on this machine."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from torchyard.host.cache import cache_folder

_VARIABLES = re.compile(
    r"PATH|LANG|LC_\w+|TZ|(?i:https?|all|no)_(?i:proxy)|SSL_CERT_\w+|REQUESTS_CA_BUNDLE"
    r"|CURL_CA_BUNDLE|PIP_(?!TARGET|PREFIX|USER|ROOT)\w+|UV_(?!PUBLISH)\w+"
)

_SAME = {
    "UV_DEFAULT_INDEX": "PIP_INDEX_URL",
    "UV_INDEX": "PIP_EXTRA_INDEX_URL",
    "UV_FIND_LINKS": "PIP_FIND_LINKS",
}
"""Variables of uv and of pip with the same meaning."""

_FILES = {
    "PIP_CONFIG_FILE": (".config/pip/pip.conf", ".pip/pip.conf"),
    "UV_CONFIG_FILE": (".config/uv/uv.toml",),
}
"""Where settings are below the home directory, and the variables that name other places."""


def installer_variables() -> dict[str, str]:
    """Return the caller's variables that say how packages are fetched, by pip and by uv."""
    return {name: text for name, text in uv_environment().items() if _VARIABLES.fullmatch(name)}


def uv_environment() -> dict[str, str]:
    """Return the environment for uv, which also gets the indexes that only pip's variables name."""
    ours = {uv: os.environ[pip] for uv, pip in _SAME.items() if pip in os.environ}
    return ours | dict(os.environ)


def installer_files() -> Iterator[tuple[str, Path]]:
    """Yield the files with the caller's settings, and the variables that could name them."""
    for name, places in _FILES.items():
        for place in places:
            if (path := Path.home() / place).is_file():
                yield name, path


def installer_cache(name: str, given: str | None = None) -> Path | None:
    """Return the cache for pip or uv: the given one, or torchyard's own, but not the caller's.

    None if it can't be made.
    """
    if not given:
        return cache_folder(name)
    path = Path(given)
    with suppress(OSError):
        path.mkdir(parents=True, exist_ok=True)
        return path.absolute()
    return None
