"""The door to the web: redirections, passwords, broken lines, and servers that know little."""

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from torchyard import __version__
from torchyard.errors import ElsewhereError, HostError, UsageError
from torchyard.host.fetcher import Fetcher, directory_url
from torchyard.host.http import HttpClient, redact_url
from torchyard.host.network_faults import network_faults
from torchyard.publish.index_check.simple import read_pages

DATA = bytes(range(256)) * 40


class _Handler(BaseHTTPRequestHandler):
    cuts = 0
    """How many answers break off."""
    ranges = True
    busy = 0
    """How many answers say that there is none today."""
    seen: list[tuple[str, str, str]]
    proxied: list[str]
    agents: set[str]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name)
        pass

    def do_GET(self) -> None:
        login = self.headers.get("Authorization", "")
        type(self).seen.append((self.command, self.path, login))
        type(self).agents.add(self.headers["User-Agent"])
        if "Proxy-Authorization" in self.headers:
            type(self).proxied.append(self.headers["Proxy-Authorization"])
        if type(self).busy:
            type(self).busy -= 1
            self.send_response(503)
            self.send_header("Retry-After", "86400")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        target = {"/moved": "/data", "/round": "/round", "/away": "file:///etc/hostname"}
        if self.path in target or self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", target.get(self.path) or self.path[4:])
            self.end_headers()
        elif self.path == "/nothing" or (self.path == "/shy" and self.command == "HEAD"):
            self.send_error(404 if self.path == "/nothing" else 405)
        else:
            self._answer()

    do_HEAD = do_GET  # noqa: N815 (its name)

    def _answer(self) -> None:
        asked = self.headers.get("Range", "") if self.ranges else ""
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start, end = int(first or 0), int(last) + 1 if last else len(DATA)
        self.send_response(206 if asked else 200)
        self.send_header("Content-Type", "Text/HTML; charset=utf-8")
        self.send_header("Content-Length", "²" if self.path == "/odd" else str(end - start))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(DATA)}")
        self.end_headers()
        if self.command == "GET":
            cut = type(self).cuts > 0
            type(self).cuts -= cut
            self.wfile.write(DATA[start : (start + end) // 2 if cut else end])


@pytest.fixture
def handler() -> type[_Handler]:
    class Handler(_Handler):
        seen: list[tuple[str, str, str]] = []  # noqa: RUF012 - one for each test
        proxied: list[str] = []  # noqa: RUF012 - the same
        agents: set[str] = set()  # noqa: RUF012 - the same

    return Handler


@pytest.fixture
def host(handler: type[_Handler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_page_and_where_it_is_in_the_end(host: str) -> None:
    answer = HttpClient().get(f"http://{host}/moved#part")
    assert (answer.status, answer.media, answer.data) == (200, "text/html", DATA)
    assert answer.url == f"http://{host}/data"


def test_what_is_not_there_is_an_answer(host: str) -> None:
    assert HttpClient().get(f"http://{host}/nothing").status == 404
    assert HttpClient().head(f"http://{host}/nothing").status == 404
    with pytest.raises(FileNotFoundError):
        list(HttpClient().pieces(f"http://{host}/nothing"))


def test_a_page_that_is_too_large_is_not_read(host: str) -> None:
    answer = HttpClient().get(f"http://{host}/data", most=len(DATA) - 1)
    assert (answer.status, answer.data) == (413, b"")


def test_sizes_even_of_servers_that_know_only_get(host: str) -> None:
    for path in ("data", "shy"):
        answer = HttpClient().head(f"http://{host}/{path}")
        assert (answer.found, answer.size) == (True, len(DATA))


def test_passwords_are_for_one_host(host: str, handler: type[_Handler]) -> None:
    login = f"Basic {base64.b64encode(b'me:p@ss').decode()}"
    port = host.partition(":")[2]
    web = HttpClient()
    web.get(f"http://me:p%40ss@{host}/moved")
    web.get(f"http://me:p%40ss@{host}/to/http://{host}/data")
    assert {seen[2] for seen in handler.seen} == {login}
    handler.seen.clear()
    web.get(f"http://me:p%40ss@{host}/to/http://localhost:{port}/data")
    assert [seen[2] for seen in handler.seen] == [login, ""]


@pytest.mark.parametrize("path", ["round", "away"])
def test_redirections_that_lead_nowhere(path: str, host: str) -> None:
    with pytest.raises(ElsewhereError) as failed:
        HttpClient().get(f"http://me:secret@{host}/{path}")
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("start", [0, 100, len(DATA)])
def test_a_file_goes_on_where_it_broke_off(
    start: int, ranges: bool, host: str, handler: type[_Handler]
) -> None:
    handler.ranges, handler.cuts = ranges, 2
    if start == len(DATA) and ranges:
        handler.cuts = 0  # there is nothing that could break off
    assert b"".join(HttpClient().pieces(f"http://{host}/data", start)) == DATA[start:]


def test_a_page_that_breaks_off_is_read_again(host: str, handler: type[_Handler]) -> None:
    handler.cuts = 3
    assert HttpClient().get(f"http://{host}/data").data == DATA


def test_a_password_is_told_wherever_the_host_is_the_same(
    host: str, handler: type[_Handler]
) -> None:
    """Links on a page may be absolute, and never have a password."""
    login = f"Basic {base64.b64encode('me:päß€'.encode()).decode()}"
    fetcher = Fetcher(f"http://me:p%C3%A4%C3%9F%E2%82%AC@{host}/simple/")
    fetcher.get(f"http://{host}/data")
    fetcher.head(f"http://{host}/data")
    list(fetcher.pieces(f"http://{host}/data"))
    assert [seen[2] for seen in handler.seen] == [login] * 3
    handler.seen.clear()
    fetcher.get(f"http://localhost:{host.partition(':')[2]}/data")
    assert [seen[2] for seen in handler.seen] == [""]


def test_proxies_get_their_password(
    host: str, handler: type[_Handler], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://me:p%40ss@{host}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert HttpClient().get("http://example.org/data").data == DATA
    assert handler.proxied == [f"Basic {base64.b64encode(b'me:p@ss').decode()}"]
    assert [seen[1:] for seen in handler.seen] == [("http://example.org/data", "")]


def test_a_proxy_of_another_kind_is_not_passed_by(
    host: str, monkeypatch: pytest.MonkeyPatch, handler: type[_Handler]
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://me:hunter2@127.0.0.1:1080")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        HostError, match=r"`socks5://127.0.0.1:1080` is not an HTTP proxy"
    ) as caught:
        HttpClient().get(f"http://{host}/data")
    assert caught.value.diagnostics[0].hint == network_faults()["proxy-kind"].hint
    assert handler.seen == []


def test_no_server_makes_us_wait_for_hours(
    host: str, monkeypatch: pytest.MonkeyPatch, handler: type[_Handler]
) -> None:
    monkeypatch.setattr("torchyard.host.http.LONGEST_WAIT", 0.1)
    handler.busy = 2
    assert HttpClient().get(f"http://{host}/data").data == DATA


def test_a_length_that_is_none_is_not_believed(host: str) -> None:
    answer = HttpClient().get(f"http://{host}/odd")
    assert (answer.size, answer.data) == (None, DATA)


def test_servers_are_told_who_asks(host: str, handler: type[_Handler]) -> None:
    HttpClient().get(f"http://{host}/moved")
    assert handler.agents == {f"torchyard/{__version__}"}


def test_a_page_for_everything_is_no_json(host: str) -> None:
    pages = read_pages(Fetcher(f"http://{host}/"), "thing", f"http://{host}/thing/")
    assert pages.html is not None
    assert pages.json is None


def test_nothing_secret_is_shown() -> None:
    assert redact_url("https://me:secret@a.org:8/b?token=secret#c") == "https://a.org:8/b"


def test_files_are_in_reach_only_from_files(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_bytes(DATA)
    url = directory_url(str(tmp_path))
    assert url == f"{tmp_path.as_uri()}/" == directory_url(tmp_path.as_uri())
    here, web = Fetcher(url), Fetcher("https://example.org/")
    assert (here.get(url).data, here.head(f"{url}index.html").size) == (DATA, len(DATA))
    assert b"".join(here.pieces(f"{url}index.html", 9)) == DATA[9:]
    assert here.get(url, most=9).status == 413
    assert not here.head(f"{url}none").found
    assert not web.get(url).found
    assert not web.head(f"{url}index.html").found
    with pytest.raises(FileNotFoundError):
        list(web.pieces(f"{url}index.html"))


@pytest.mark.parametrize("path", ["/dev/zero", "/dev", "/proc/self/none", "/%00", f"/{'x' * 999}"])
def test_only_files_are_read(path: str, tmp_path: Path) -> None:
    fetcher = Fetcher(tmp_path.as_uri())
    assert not fetcher.get(f"file://{path}").found
    assert not fetcher.head(f"file://{path}").found
    with pytest.raises(FileNotFoundError):
        next(fetcher.pieces(f"file://{path}"))


@pytest.mark.parametrize(
    "place",
    [
        "/no/such/place",
        "s3://bucket/x",
        "file://host",
        "https://[x/",
        "http://me:secret@a.org:b/",
    ],
)
def test_places_that_can_not_be_read(place: str) -> None:
    with pytest.raises(UsageError):
        directory_url(place)
