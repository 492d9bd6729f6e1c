"""Where installers find packages."""

import pytest

from torchyard.index.address import parse_index_url


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org",
        "http://127.0.0.1:8080/nightly",
        "https://[::1]:8443/simple",
        "file:///srv/channel",
        "file://localhost/srv/channel",
    ],
)
def test_what_installers_read(url: str) -> None:
    assert parse_index_url(f"{url}/") == parse_index_url(url) == url


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("s3://bucket", "no installer reads"),
        ("ftp://example.org", "no installer reads"),
        ("example.org/simple", "no installer reads"),
        ("https:/example.org", "names no place: write it as https://example.org/"),
        ("http://", "names no place"),
        ("file://", "names no place: write it as file:///srv/channel"),
        ("file:///", "names no place"),
        ("file://srv/channel", "names no place"),
        ("https://example.org:port/", "is no address"),
        ("https://[::1/", "is no address"),
    ],
)
def test_what_they_do_not_read(url: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        parse_index_url(url)
