"""Addresses by which installers find a channel, or another index."""

from urllib.parse import urlsplit

_SERVED = ("https", "http")


def parse_index_url(url: str) -> str:
    """Read where users find packages; a bucket is nothing that they can install from."""
    try:
        parts = urlsplit(url)
        place = parts.hostname if parts.scheme in _SERVED else parts.path.lstrip("/")
        _ = parts.port  # wrong ones are refused here
    except ValueError as error:
        msg = f"`{url}` is no address: {error}"
        raise ValueError(msg) from error
    if parts.scheme not in (*_SERVED, "file"):
        msg = f"no installer reads `{url}`: write https://…, http://… or file:///…"
        raise ValueError(msg)
    if not place or (parts.scheme == "file" and parts.netloc not in ("", "localhost")):
        form = "file:///srv/channel" if parts.scheme == "file" else f"{parts.scheme}://example.org/"
        msg = f"`{url}` names no place: write it as {form}"
        raise ValueError(msg)
    return url.rstrip("/")
