"""Channels as users meet them: published, served by nginx, read by pip, uv and py-rattler.

The configurations of nginx are those of `examples/serve`. A channel is a directory that nginx
serves, or a bucket of a real S3 server that nginx stands before, as a CDN would.
"""

import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pytest
from tests.conda import make_package
from tests.helpers import ROOT, Command
from tests.installers import Installer, Pip, RefusedError, Uv
from tests.services import PUBLIC, Asked, Nginx, S3Server
from tests.smoke import make_wheel

from torchyard.checks.smoke.conda import solve
from torchyard.index.entry import package_key
from torchyard.index.page import Media
from torchyard.publish.channel import Channel
from torchyard.publish.shelves import headers

pytestmark = pytest.mark.integration

EXAMPLES = ROOT / "examples/serve"
JSON = "application/vnd.pypi.simple.v1+json"
MACHINE = {"__glibc": "2.36", "__unix": "0", "__linux": "6.1"}


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


@pytest.fixture(params=["directory", "bucket"])
def served(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    torchyard: Command,
) -> Iterator[Served]:
    if request.param == "directory":
        root = tmp_path / "channel"
        with Nginx(tmp_path / "nginx", directory_config(root)) as nginx:
            yield Served(root.as_uri(), nginx, torchyard)
        return
    server: S3Server = request.getfixturevalue("s3_server")
    place = server.public_place()
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    config = bucket_config(server.endpoint, f"{PUBLIC}/{place.prefix}")
    with Nginx(tmp_path / "nginx", config) as nginx:
        yield Served(place.url, nginx, torchyard)


@pytest.fixture(params=[Pip(), Uv()], ids=["pip", "uv"])
def installer(request: pytest.FixtureRequest) -> Installer:
    installer: Installer = request.param
    return installer


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three versions of a project in two variants, and a project that all of them require.

    The newest can't be installed: nobody has what it requires. Installers find out.
    """
    folder = tmp_path_factory.mktemp("release")
    for version, needs in (("1.0", "shared>=2"), ("1.1", "shared>=2"), ("1.2", "shared>=9")):
        for compute in ("cpu", "cu130"):
            make_wheel(folder, version=f"{version}+{compute}", requires=needs, dist="tiny")
    make_wheel(folder, version="2.0", dist="shared")
    return folder


SHARED = "shared-2.0-py3-none-any.whl"


def tiny(version: str) -> str:
    return f"tiny-{version}-py3-none-any.whl"


def names(asked: Iterable[Asked], suffix: str) -> list[str]:
    """The files with this ending that were asked for; each of them was there."""
    found = [one for one in asked if one.path.endswith(suffix)]
    assert all(one.status == 200 for one in found), found
    return sorted(unquote(Path(one.path).name) for one in found)


def test_installers_resolve_from_sidecars_and_fetch_only_what_they_install(
    served: Served, installer: Installer, release: Path, tmp_path: Path
) -> None:
    served.publish(release)
    index = f"{served.url}/cu130/"
    found = installer.install(index, "tiny", tmp_path / "installed")
    asked = served.nginx.asked()
    assert found == {"tiny": "1.1+cu130", "shared": "2.0"}
    assert '"1.1+cu130"' in (tmp_path / "installed/tiny/__init__.py").read_text(encoding="utf-8")
    # 1.2 was looked at and rejected without its wheel, and all that before the first wheel.
    looked_at = [f"{name}.metadata" for name in (SHARED, tiny("1.1+cu130"), tiny("1.2+cu130"))]
    assert names(asked, ".metadata") == looked_at
    assert names(asked, ".whl") == [SHARED, tiny("1.1+cu130")]
    kinds = [Path(one.path).suffix for one in asked]
    assert kinds.index(".whl") > max(n for n, kind in enumerate(kinds) if kind == ".metadata")
    assert {one.agent for one in asked} == {installer.agent}
    pages = [one for one in asked if one.path.endswith("/")]
    assert {one.path for one in pages} == {"/cu130/tiny/", "/cu130/shared/"}
    assert {one.media for one in pages} == {JSON}


def test_locking_fetches_no_wheel(served: Served, release: Path, tmp_path: Path) -> None:
    served.publish(release)
    chosen = Uv().lock(f"{served.url}/cpu/", "tiny", tmp_path)
    asked = served.nginx.asked()
    assert names(asked, ".whl") == []
    assert len(names(asked, ".metadata")) == 3
    entries = served.channel.state(served.channel.head(), "simple/tiny").entries
    digests = {entry.version: entry.sha256 for entry in entries}
    assert chosen["tiny"] == ("1.1+cpu", digests["1.1+cpu"])


@pytest.mark.parametrize(
    ("view", "version", "other"),
    [("cpu", "1.1+cpu", "1.1+cu130"), ("simple", "1.1+cu130", "1.0+cpu")],
)
def test_each_variant_has_an_index_and_one_has_all(
    *,
    served: Served,
    installer: Installer,
    release: Path,
    tmp_path: Path,
    view: str,
    version: str,
    other: str,
) -> None:
    served.publish(release)
    found = installer.install(f"{served.url}/{view}/", "tiny", tmp_path / "a")
    assert found == {"tiny": version, "shared": "2.0"}
    if view == "simple":
        found = installer.install(f"{served.url}/{view}/", f"tiny=={other}", tmp_path / "b")
        assert found == {"tiny": other, "shared": "2.0"}
    else:
        with pytest.raises(RefusedError, match=re.escape(f"tiny=={other}")):
            installer.install(f"{served.url}/{view}/", f"tiny=={other}", tmp_path / "b")


def test_changed_wheels_and_sidecars_are_refused(
    served: Served, installer: Installer, release: Path, tmp_path: Path
) -> None:
    served.publish(release)
    channel = served.channel
    entries = channel.state(channel.head(), "simple/tiny").entries
    (entry,) = (one for one in entries if one.version == "1.1+cpu")
    key = package_key(entry.sha256, entry.file)
    folder = tmp_path / "evil"
    folder.mkdir()
    files = {"tiny/__init__.py": "import os  # and more\n"}
    evil = make_wheel(folder, files, version="1.1+cpu", requires="shared>=2", dist="tiny")
    channel.objects.write(key, evil.read_bytes(), headers(Media.BYTES, fixed=True))
    with pytest.raises(RefusedError, match=f"(?is)hash.*{entry.sha256}"):
        installer.install(f"{served.url}/cpu/", "tiny", tmp_path / "a")
    assert not (tmp_path / "a/tiny").exists()


def test_html_alone_will_do(
    release: Path, installer: Installer, tmp_path: Path, torchyard: Command
) -> None:
    """A server that knows nothing but `/` → `/index.html`."""
    root = tmp_path / "channel"
    lines = directory_config(root).splitlines(keepends=True)
    text = "".join(line for line in lines if "~application" not in line)
    assert text.count("\n") == len(lines) - 1
    with Nginx(tmp_path / "nginx", text) as nginx:
        Served(root.as_uri(), nginx, torchyard).publish(release)
        found = installer.install(f"{nginx.url}/cpu/", "tiny", tmp_path / "installed")
        asked = nginx.asked()
    assert found == {"tiny": "1.1+cpu", "shared": "2.0"}
    pages = {one.media for one in asked if one.path.endswith("/")}
    assert pages == {"text/html; charset=utf-8"}
    assert len(names(asked, ".metadata")) == 3
    assert len(names(asked, ".whl")) == 2


def test_copy_is_a_channel(
    release: Path, installer: Installer, tmp_path: Path, torchyard: Command
) -> None:
    """Behind an air gap there may be no server at all."""
    assert torchyard("publish", release, "--to", tmp_path / "channel").code == 0
    copy = tmp_path / "media/usb stick"
    shutil.copytree(tmp_path / "channel", copy)
    shutil.rmtree(tmp_path / "channel")
    found = installer.install(f"{copy.as_uri()}/cu130/", "tiny", tmp_path / "installed")
    assert found == {"tiny": "1.1+cu130", "shared": "2.0"}


class Answer(NamedTuple):
    """What a server says of a page."""

    media: str
    cache: str
    vary: str
    size: int


def get(url: str, accept: str = "*/*") -> Answer:
    request = urllib.request.Request(url, headers={"Accept": accept})  # noqa: S310 - it's http
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        told = answer.headers
        vary = ", ".join(told.get_all("Vary") or ())
        return Answer(told["Content-Type"], told["Cache-Control"], vary, len(answer.read()))


def test_types_and_caching(served: Served, release: Path) -> None:
    served.publish(release)
    channel = served.channel
    (entry,) = channel.state(channel.head(), "simple/shared").entries
    for page in ("cpu/", "cpu/tiny/", "simple/"):
        html, simple = get(f"{served.url}/{page}"), get(f"{served.url}/{page}", JSON)
        assert html.media == "text/html; charset=utf-8"
        assert simple.media == JSON
        for answer in (html, simple):
            assert answer.cache == "public, max-age=60"
            assert "Accept" in answer.vary
    key = package_key(entry.sha256, entry.file)
    for path, media in ((key, "application/octet-stream"), (f"{key}.metadata", "text/plain")):
        answer = get(f"{served.url}/{path}")
        assert answer.media.partition(";")[0] == media
        assert answer.cache == "public, max-age=31536000, immutable"
    assert get(f"{served.url}/{key}").size == entry.size
    assert get(f"{served.url}/channel.json").media == "application/json"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(f"{served.url}/cpu/nothing/")


def test_conda_packages_are_solved_and_installed(served: Served, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "share").mkdir(parents=True)
    (tree / "share/tiny.txt").write_text("it works", encoding="utf-8")
    made = tmp_path / "made"
    make_package(made, "libtiny", "1.0", "cpu_0", tree)
    for version in ("1.0", "1.1"):
        make_package(made, "tiny", version, "cpu_0", depends=["libtiny 1.0.*"])
    served.publish(made)
    prefix, cache = tmp_path / "prefix", tmp_path / "cache"
    found = solve([f"{served.url}/conda"], ["tiny"], prefix, cache, MACHINE, exact=True)
    asked = served.nginx.asked()
    assert found == {"tiny": "cpu_0", "libtiny": "cpu_0"}
    assert (prefix / "share/tiny.txt").read_text(encoding="utf-8") == "it works"
    assert names(asked, ".conda") == ["libtiny-1.0-cpu_0.conda", "tiny-1.1-cpu_0.conda"]
