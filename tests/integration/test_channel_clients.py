"""Channels as users meet them: published, served by nginx, read by pip, uv and py-rattler."""

import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.conda import SYSTEM, make_package
from tests.support.helpers import Command
from tests.support.installers import Installer, RefusedError, Uv
from tests.support.served import JSON, SHARED, Served, directory_config, names, tiny
from tests.support.services import Nginx
from tests.support.smoke import make_wheel

from torchyard.index.entry import package_key
from torchyard.index.page import Media
from torchyard.publish.channel.layout import headers
from torchyard.smoke.conda import solve

pytestmark = pytest.mark.integration


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


def test_a_wheel_with_a_build_number_is_installed_in_place_of_the_first(
    served: Served, installer: Installer, release: Path, tmp_path: Path
) -> None:
    served.publish(release)
    folder = tmp_path / "anew"
    folder.mkdir()
    files = {"tiny/__init__.py": "anew = True\n"}
    made = make_wheel(folder, files, version="1.1+cpu", requires="shared>=2", dist="tiny")
    made.rename(folder / made.name.replace("1.1+cpu-", "1.1+cpu-1-"))
    served.publish(folder)
    found = installer.install(f"{served.url}/cpu/", "tiny", tmp_path / "installed")
    assert found == {"tiny": "1.1+cpu", "shared": "2.0"}
    installed = (tmp_path / "installed/tiny/__init__.py").read_text(encoding="utf-8")
    assert installed == "anew = True\n"
    entries = served.channel.state(served.channel.head(), "simple/tiny").entries
    assert {tiny("1.1+cpu"), tiny("1.1+cpu-1")} <= {entry.file for entry in entries}


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
    channel.objects.write(key, evil.read_bytes(), headers(Media.BYTES, "bytes"))
    with pytest.raises(RefusedError, match=f"(?is)hash.*{entry.sha256}"):
        installer.install(f"{served.url}/cpu/", "tiny", tmp_path / "a")
    assert not (tmp_path / "a/tiny").exists()
    (entry,) = channel.state(channel.head(), "simple/shared").entries
    key = f"{package_key(entry.sha256, entry.file)}.metadata"
    channel.objects.write(key, b"Name: shared\nVersion: 2.0\n", headers(Media.TEXT, "bytes"))
    with pytest.raises(RefusedError, match=f"(?is){entry.metadata}"):
        installer.install(f"{served.url}/cpu/", "shared", tmp_path / "b")


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
    with urllib.request.urlopen(request, timeout=300) as answer:  # noqa: S310
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
    assert get(f"{served.url}/", JSON).media == "text/html; charset=utf-8"
    with pytest.raises(urllib.error.HTTPError, match="404") as missing:
        get(f"{served.url}/cpu/nothing/")
    missing.value.close()


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
    found = solve([f"{served.url}/conda"], ["tiny"], prefix, cache, SYSTEM, exact=True)
    asked = served.nginx.asked()
    assert found == {"tiny": ("1.1", "cpu_0"), "libtiny": ("1.0", "cpu_0")}
    assert (prefix / "share/tiny.txt").read_text(encoding="utf-8") == "it works"
    assert names(asked, ".conda") == ["libtiny-1.0-cpu_0.conda", "tiny-1.1-cpu_0.conda"]
    package = get(f"{served.url}/conda/linux-64/tiny-1.1-cpu_0.conda")
    assert package.cache == "public, max-age=86400"
