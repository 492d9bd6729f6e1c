"""The sdist of a project is found in an index."""

from pathlib import Path

import pytest

from torchyard.errors import HostError, UsageError
from torchyard.host.network_settings import network_settings
from torchyard.index.simple.sdist import Sdist, download_sdist, find_sdist

PAGE = """<!DOCTYPE html><html><body>
<a href="my_ext-1.0.tar.gz#sha256=11">my_ext-1.0.tar.gz</a>
<a href="my_ext-1.1.tar.gz#sha256=22">my_ext-1.1.tar.gz</a>
<a href="my_ext-1.1-py3-none-any.whl#sha256=33">my_ext-1.1-py3-none-any.whl</a>
<a href="my_ext-1.2.tar.gz#sha256=44" data-yanked="">my_ext-1.2.tar.gz</a>
<a href="my_ext-2.0rc1.tar.gz#sha256=55">my_ext-2.0rc1.tar.gz</a>
<a href="my_ext-0.9.tar.gz">my_ext-0.9.tar.gz</a>
<a href="my_ext_more-3.0.tar.gz#sha256=66">my_ext_more-3.0.tar.gz</a>
</body></html>
"""


@pytest.fixture
def index(tmp_path: Path) -> str:
    (tmp_path / "my-ext").mkdir()
    page = PAGE.replace("=1", f"={'1' * 62}1").replace("=2", f"={'2' * 62}2")
    (tmp_path / "my-ext/index.html").write_text(page, encoding="utf-8")
    return tmp_path.as_uri()


def test_the_newest_release_is_meant_unless_one_is_named(index: str) -> None:
    found = find_sdist("my_ext", [index])
    assert (found.name, found.version, found.url) == (
        "my_ext",
        "1.1",
        f"{index}/my-ext/my_ext-1.1.tar.gz",
    )
    assert set(found.sha256) == {"2"}
    assert find_sdist("My.Ext==1.0", [index]).version == "1.0"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("my-ext==7", "there is no sdist of my-ext 7"),
        ("my-ext==seven", "there is no sdist of my-ext seven"),
        ("other", "has an sdist of `other`"),
        ("my-ext==0.9", "no SHA-256 of `my_ext-0.9.tar.gz`"),
    ],
)
def test_what_is_not_there_is_an_error(index: str, asked: str, why: str) -> None:
    with pytest.raises(HostError, match=why):
        find_sdist(asked, [index])


def test_an_sdist_is_downloaded_from_its_index(index: str, tmp_path: Path) -> None:
    (tmp_path / "my-ext/my_ext-1.1.tar.gz").write_bytes(b"an archive")
    (tmp_path / "to").mkdir()
    path = download_sdist(find_sdist("my_ext", [index]), tmp_path / "to")
    assert path.read_bytes() == b"an archive"
    with pytest.raises(HostError, match="does not have it"):
        download_sdist(find_sdist("my_ext==1.0", [index]), tmp_path / "to")


def test_the_page_of_a_server_can_not_name_a_file_of_this_machine(tmp_path: Path) -> None:
    secret = tmp_path / "secret-1.tar.gz"
    secret.write_bytes(b"secret")
    sdist = Sdist("secret", "1", secret.as_uri(), "0" * 64, "https://index.example/simple/")
    (tmp_path / "to").mkdir()
    with pytest.raises(HostError, match="does not have it"):
        download_sdist(sdist, tmp_path / "to")


@pytest.mark.parametrize("asked", ["", "../x", "a>=1", "a==1 --index-url=b", "a @ b"])
def test_what_names_no_release_is_refused(index: str, asked: str) -> None:
    with pytest.raises(UsageError, match="does not name a release"):
        find_sdist(asked, [index])


def test_the_indexes_are_those_of_uv_and_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://one.example/simple")
    monkeypatch.delenv("UV_INDEX", raising=False)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://two.example/simple")
    assert network_settings().indexes == (
        "https://one.example/simple",
        "https://two.example/simple",
    )
