"""Addresses at which installers find a channel or another index."""

from urllib.parse import urlsplit

_SERVED = ("https", "http")


def parse_index_url(url: str) -> str:
    """Return an index URL without its last slash; refuse a URL that no installer can read."""
    try:
        parts = urlsplit(url)
        root = parts.hostname if parts.scheme in _SERVED else parts.path.lstrip("/")
        _ = parts.port  # raises for a malformed port
    except ValueError as error:
        msg = f"`{url}` is not an address: {error}"
        raise ValueError(msg) from error
    if parts.scheme not in (*_SERVED, "file"):
        msg = f"no installer reads `{url}`: write https://…, http://… or file:///…"
        raise ValueError(msg)
    if not root or (parts.scheme == "file" and parts.netloc not in ("", "localhost")):
        form = "file:///srv/channel" if parts.scheme == "file" else f"{parts.scheme}://example.org/"
        msg = f"`{url}` is not a complete address: write it as {form}"
        raise ValueError(msg)
    return url.rstrip("/")
