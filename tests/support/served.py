"""Channels served by nginx: from a directory, or as a proxy of an S3 bucket.

The configurations are those of `examples/serve`.
"""

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pytest
from tests.support.helpers import ROOT, Command
from tests.support.services import PUBLIC, Asked, Nginx, S3Server
from tests.support.smoke import make_wheel

from torchyard.publish.channel.channel import Channel

EXAMPLES = ROOT / "examples/serve"
JSON = "application/vnd.pypi.simple.v1+json"


class Served(NamedTuple):
    """A channel: where it is written, and the server where it is read."""

    place: str
    nginx: Nginx
    torchyard: Command

    @property
    def url(self) -> str:
        return self.nginx.url

    @property
    def channel(self) -> Channel:
        return Channel.at(self.place)

    def call(self, command: str, *words: object) -> str:
        done = self.torchyard(command, *words)
        assert done.code == 0, done.err
        return done.out

    def publish(self, folder: Path, *words: str) -> None:
        self.call("publish", folder, "--to", self.place, *words)

    def delete_hidden(self) -> list[str]:
        """Delete all hidden files; retry until the second of hiding them is over."""
        deleted: list[str] = []
        for _ in range(100):
            said = json.loads(self.call("channel", "prune", self.place, "--grace", "0", "--json"))
            deleted += said["deleted"]
            head = self.channel.head()
            if not any(self.channel.state(head, part).hidden for part in head.parts):
                return deleted
            time.sleep(0.1)
        pytest.fail("it stays hidden")


def directory_config(root: Path) -> str:
    text = (EXAMPLES / "nginx.conf").read_text(encoding="utf-8")
    assert "root /srv/channel;" in text
    return text.replace("/srv/channel", str(root))


def bucket_config(endpoint: str, place: str) -> str:
    text = (EXAMPLES / "nginx-s3.conf").read_text(encoding="utf-8")
    host = endpoint.removeprefix("http://")
    assert text.count("http://bucket") == 3
    text = text.replace("http://bucket", f"http://bucket/{place}")
    return text.replace("nightly.s3.example.org:80", host).replace("nightly.s3.example.org", host)


@contextmanager
def serve_directory(folder: Path, torchyard: Command) -> Iterator[Served]:
    root = folder / "channel"
    with Nginx(folder / "nginx", directory_config(root)) as nginx:
        yield Served(root.as_uri(), nginx, torchyard)


@contextmanager
def serve_bucket(
    server: S3Server, folder: Path, torchyard: Command, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    place = server.public_place()
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    config = bucket_config(server.endpoint, f"{PUBLIC}/{place.prefix}")
    with Nginx(folder / "nginx", config) as nginx:
        yield Served(place.url, nginx, torchyard)


SHARED = "shared-2.0-py3-none-any.whl"


def tiny(version: str) -> str:
    return f"tiny-{version}-py3-none-any.whl"


def make_release(folder: Path) -> None:
    """Three versions of a project in two variants, and a project that all of them require.

    The newest can't be installed, as its requirement is missing: installers must find that out.
    """
    for version, needs in (("1.0", "shared>=2"), ("1.1", "shared>=2"), ("1.2", "shared>=9")):
        for compute in ("cpu", "cu130"):
            make_wheel(folder, version=f"{version}+{compute}", requires=needs, dist="tiny")
    make_wheel(folder, version="2.0", dist="shared")


def names(asked: Iterable[Asked], suffix: str) -> list[str]:
    """The files with this ending that were asked for; each of them was there."""
    found = [one for one in asked if one.path.endswith(suffix)]
    assert all(one.status == 200 for one in found), found
    return sorted(unquote(Path(one.path).name) for one in found)
