"""What a server of others can't do: downgrade, never end, attest nothing, hide hostile wheels."""

import io
import threading
import zipfile
from collections.abc import Callable, Iterator
from errno import EFBIG
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.channels import Made, put, wheel

from torchyard.errors import ElsewhereError, PublishError
from torchyard.host.fetcher import Fetcher
from torchyard.host.http import FetchResult, HttpClient, _followed
from torchyard.index.simple.read import FileLink
from torchyard.publish.channel.channel import Channel
from torchyard.publish.mirror import fetch
from torchyard.publish.ops.promote import (
    Route,
    gather_packages,
    head_for,
    refuse_unsound_wheels,
)
from torchyard.publish.select import parse_selection
from torchyard.publish.staged import refuse_unsound

PIECE = b"x" * (1 << 16)
NOW = "2026-12-01T00:00:00Z"


class _Endless(BaseHTTPRequestHandler):
    """Sends a body without a length and without an end."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name)
        pass

    def do_GET(self) -> None:
        status = int(self.path.partition("?")[2] or 200)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/again?302")
        self.end_headers()
        try:
            while True:
                self.wfile.write(PIECE)
        except OSError:
            return  # the client has had enough


@pytest.fixture
def endless() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Endless) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/demo-1.0-py3-none-any.whl"
        server.shutdown()
        thread.join()


# ------------------------------------------------------------------------------------ transport


@pytest.mark.parametrize("target", ["http://good.example/x", "http://evil.example/x", "HTTP:/x"])
def test_a_redirect_never_leaves_https(target: str) -> None:
    with pytest.raises(ElsewhereError, match="from https to http") as failed:
        _followed("https://me:secret@good.example/y", target)
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://a.example/y", "https://b.example/x"),
        ("https://a.example/y", "//b.example/x"),
        ("http://a.example/y", "https://a.example/x"),
        ("http://a.example/y", "/x"),
    ],
)
def test_other_redirects_are_followed(url: str, target: str) -> None:
    assert _followed(url, target).endswith("/x")


def test_a_body_without_an_end_is_not_read_to_it(endless: str) -> None:
    most = 1 << 20
    got: list[bytes] = []
    with pytest.raises(OSError, match="File too large") as failed:
        got.extend(HttpClient().pieces(endless, most=most))
    assert failed.value.errno == EFBIG
    assert sum(map(len, got)) <= most


@pytest.mark.parametrize(
    ("status", "why"), [(302, "redirects too often"), (503, "answers 503 repeatedly")]
)
@pytest.mark.parametrize("ask", [HttpClient.get, HttpClient.head])
def test_a_body_without_an_end_is_not_read_before_a_retry(
    endless: str, status: int, why: str, ask: Callable[[HttpClient, str], FetchResult]
) -> None:
    with pytest.raises(ElsewhereError, match=why):
        ask(HttpClient(tries=2), f"{endless}?{status}")


@pytest.mark.parametrize("size", [None, 1 << 17, 1 << 40])
def test_a_mirror_keeps_nothing_of_a_file_without_an_end(
    endless: str, size: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "LARGEST_FILE", 1 << 18)
    link = FileLink(file="demo-1.0-py3-none-any.whl", url=endless, size=size)
    got: list[int] = []
    with pytest.raises(PublishError, match="another hash or size, or no end"):
        fetch.fetch_link(Fetcher(endless), link, tmp_path / "spool", got.append)
    assert not list((tmp_path / "spool").iterdir())
    assert sum(got) <= 1 << 18


# ------------------------------------------------------------------------------ hostile wheels


def _with(name: str, mode: int = 0o100644) -> Callable[[zipfile.ZipFile], None]:
    def add(archive: zipfile.ZipFile) -> None:
        info = zipfile.ZipInfo("x" * len(name))
        info.filename, info.external_attr = name, mode << 16
        archive.writestr(info, b"evil")

    return add


HOSTILE = {
    "up": _with("../../../.bashrc"),
    "up inside": _with("demo/../../x"),
    "absolute": _with("/etc/cron.d/x"),
    "windows up": _with("..\\..\\x"),
    "drive": _with("C:/x"),
    "link": _with("demo/link", 0o120777),
    "fifo": _with("demo/fifo", 0o010644),
    "device": _with("demo/device", 0o020644),
    "twice": _with("demo-1.0.dist-info/METADATA"),
    "other case": _with("demo-1.0.dist-info/metadata"),
    "null": _with("demo/x\0.py"),
    "newline": _with("demo/x\n.py"),
}


def hostile(kind: str) -> Made:
    """Return a wheel with one member that should not be there."""
    good = wheel("demo")
    data = io.BytesIO(good.data)
    with zipfile.ZipFile(data, "a") as archive, pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)  # of a name that is there twice
        HOSTILE[kind](archive)
    bad = data.getvalue()
    entry = replace(good.entry, sha256=sha256(bad).hexdigest(), size=len(bad))
    return good._replace(data=bad, entry=entry)


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_wheel_is_neither_mirrored_nor_promoted(kind: str, tmp_path: Path) -> None:
    made = hostile(kind)
    path = tmp_path / made.entry.file
    path.write_bytes(made.data)
    with pytest.raises(PublishError, match=made.entry.file):
        refuse_unsound(path)
    source = Channel.at(str(tmp_path / "mirror"), make=True)
    put(source, made)
    with pytest.raises(PublishError, match=made.entry.file):
        _promote(source, tmp_path)


def test_a_good_wheel_is_promoted(tmp_path: Path) -> None:
    source = Channel.at(str(tmp_path / "mirror"), make=True)
    put(source, wheel("demo"))
    _promote(source, tmp_path)
    assert not list((tmp_path / "scratch").iterdir())


def _promote(source: Channel, folder: Path) -> None:
    target = Channel.at(str(folder / "release"), make=True)
    (folder / "scratch").mkdir()
    found = gather_packages(source, parse_selection(["demo"], ["*"]), NOW)
    route = Route(source, target, folder / "scratch")
    refuse_unsound_wheels(route, head_for(source, target, "release"), found)
