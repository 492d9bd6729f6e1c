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
        ("https:/example.org", "is not a complete address: write it as https://example.org/"),
        ("http://", "is not a complete address"),
        ("file://", "is not a complete address: write it as file:///srv/channel"),
        ("file:///", "is not a complete address"),
        ("file://srv/channel", "is not a complete address"),
        ("https://example.org:port/", "is not an address"),
        ("https://[::1/", "is not an address"),
    ],
)
def test_what_they_do_not_read(url: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        parse_index_url(url)
