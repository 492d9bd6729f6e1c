"""URLs of stores and channels: directories and buckets."""

import re
from pathlib import Path
from urllib.parse import unquote

from torchyard.errors import UsageError

URL_FORMS = "file:///…, s3://BUCKET/… or a directory"

_ONE_SLASH = re.compile(r"(file|s3|https?):/(?!/)")


def bucket_name(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]


def object_path(url: str, key: str) -> str:
    """Return the name of an object in its bucket."""
    return f"{url.partition('://')[2].partition('/')[2].strip('/')}/{key}".lstrip("/")


def store_folder(url: str) -> Path | None:
    """Return the directory that a URL means, or None for a bucket."""
    if wrong := _ONE_SLASH.match(url):
        msg = f"`{url}` is not the address of a store"
        raise UsageError(msg, hint=f"write {wrong[1]}://{url[wrong.end() :]}")
    scheme, separator, rest = url.partition("://")
    if separator and scheme not in ("file", "s3"):
        msg = f"`{url}` is not the address of a store"
        served = "name the directory or bucket behind it: " if scheme.startswith("http") else ""
        raise UsageError(msg, hint=served + URL_FORMS)
    if scheme == "file" and separator and not rest.startswith("/"):
        msg = f"`{url}` names a host, not a directory"
        raise UsageError(msg, hint=f"write file:///{rest}, or only {rest}")
    if separator and scheme == "s3":
        return None
    return Path(unquote(rest) if separator else url).absolute()
