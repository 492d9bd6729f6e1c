"""`lock` adds a new torch, Python or version to the file, whose own lines stay."""

import hashlib
import tarfile
from pathlib import Path

import pytest
from tests.support.helpers import Command
from tests.support.torch_index import FILE, add_torch, fingerprints, project, use_only

from torchyard.config.document import Document
from torchyard.errors import ConfigError
from torchyard.features.lock.use_case import updated_file


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_only(tmp_path, monkeypatch)
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('["a"]  # x', '["a", "b"]  # x'),
        ('["a",]', '["a", "b",]'),
        ('[\n  "a"\n]', '[\n  "a", "b"\n]'),
        ('[\n  "a", # x\n  # y\n]', '[\n  "a", "b", # x\n  # y\n]'),
        ('["a" # x\r\n,]', '["a", "b" # x\r\n,]'),
        ("['a']", "['a', \"b\"]"),
        ("['a', 'b']", "['a', 'b']"),
    ],
)
def test_lists_keep_their_form_and_comments(old: str, new: str) -> None:
    text = "[table] # first\nkey = {}\nother = 1 # last\n"
    made = Document("file", text.format(old)).with_item(("table", "key"), "b")
    assert made.text == text.format(new)
    assert made.raw["table"]["key"] == ["a", "b"]


@pytest.mark.parametrize("text", ['key = "a"\n', "key = []\n", ""])
def test_what_can_not_be_edited_is_left_to_its_author(text: str) -> None:
    with pytest.raises(ConfigError, match="`b` can't be added: `key` is not a list"):
        Document("file", text).with_item(("key",), "b")


def test_a_value_is_replaced_where_it_is() -> None:
    made = Document("file", "[a]\nb = '1.0'  # one\n").with_string(("a", "b"), "2.0")
    assert made.text == '[a]\nb = "2.0"  # one\n'


@pytest.mark.slow
def test_a_new_torch_and_python_add_cells_and_change_no_others(
    torchyard: Command, folder: Path
) -> None:
    file = project(folder)
    file.write_text(f"# mine\n{file.read_text('utf-8')}# the end\n", encoding="utf-8")
    assert torchyard("lock", "-f", file).code == 0
    old, first = file.read_text("utf-8"), fingerprints(torchyard, file)
    add_torch(folder, "2.13.0", pythons=("cp313",))
    add_torch(folder, "9.8.0")
    done = torchyard("lock", "-f", file, "--torch", "9.8", "--python", "cp313")
    assert done.code == 0, done.err
    wanted = old.replace('"torch2.13"', '"torch2.13", "torch9.8"')
    assert file.read_text("utf-8") == wanted.replace('"cp312"', '"cp312", "cp313"')
    second = fingerprints(torchyard, file)
    assert second.items() > first.items()
    new = {name for name in second.keys() - first.keys() if name.startswith("package:")}
    assert {tuple(name.split("/")[2:4]) for name in new} == {
        ("cpu-torch2.13", "cp313"),
        ("cpu-torch9.8", "cp312"),  # which has no wheels for cp313
    }
    before = file.stat()
    assert torchyard("lock", "-f", file, "--torch", "9.8").code == 0
    assert file.stat().st_mtime_ns == before.st_mtime_ns


def test_a_file_that_can_not_be_locked_stays_as_it_was(torchyard: Command, folder: Path) -> None:
    file = project(folder)
    old = file.read_text("utf-8")
    for words, why in (
        (("--torch", "7.7"), "no index of this machine has wheels of torch 7.7"),
        (("--python", "cp27"), "unknown python `cp27`"),
        (("--version",), "does not say where the source of that version is"),
    ):
        done = torchyard("lock", "-f", file, *words)
        assert done.code != 0
        assert why in done.err
        assert file.read_text("utf-8") == old


def add_sdists(folder: Path, *versions: str) -> dict[str, str]:
    """Make an index of sdists, and return their hashes."""
    folder.mkdir(parents=True)
    digests, page = {}, ""
    for version in versions:
        name = f"my_ext-{version}.tar.gz"
        with tarfile.open(folder / name, "w:gz") as archive:
            archive.addfile(tarfile.TarInfo(f"my_ext-{version}/setup.py"))
        digests[version] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        page += f'<a href="{name}#sha256={digests[version]}">{name}</a>\n'
    (folder / "index.html").write_text(page, encoding="utf-8")
    return digests


def test_the_newest_sdist_is_the_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = add_sdists(tmp_path / "index/my-ext", "1.0", "1.1", "1.2")
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "index").as_uri())
    file = tmp_path / "torchyard.toml"
    source = f'sdist = "my-ext==1.0"  # theirs\nsha256 = "{digests["1.0"]}"'
    text = FILE.replace('path = "code"', source)
    file.write_text(text, encoding="utf-8")
    for asked, version in (("1.1", "1.1"), ("", "1.2")):
        with updated_file(str(file), version=asked):
            pass
        made = text.replace('1.0"', f'{version}"').replace(digests["1.0"], digests[version])
        assert file.read_text("utf-8") == made


def test_a_tag_follows_the_version(torchyard: Command, folder: Path) -> None:
    """The lock fails, as there is no such repository, so the file is as before."""
    file = project(folder)
    text = file.read_text("utf-8").replace('path = "code"', 'git = "none"\nrev = "v1.0"')
    file.write_text(text, encoding="utf-8")
    done = torchyard("lock", "-f", file, "--version", "1.1")
    assert "v1.1" in done.err
    assert file.read_text("utf-8") == text
