"""Directories that are not trusted: what can be in them, and that nothing outside is touched."""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from torchyard.errors import HostError
from torchyard.host.untrusted_tree import EntryKind, UntrustedTree, remove_tree

SECRET = "a file of the machine\n"


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A directory outside, which must be the same afterwards."""
    folder = tmp_path / "victim"
    (folder / "sub").mkdir(parents=True)
    for path in (folder / "file", folder / "sub" / "file"):
        path.write_text(SECRET)
    before = _picture(folder)
    yield folder
    assert _picture(folder) == before


def _picture(folder: Path) -> list[tuple[str, int, bytes]]:
    return [
        (str(path), path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted([folder, *folder.rglob("*")])
    ]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("mine")
    (folder / "empty").mkdir()
    (folder / "a.txt").write_text("text")
    return folder


def test_walk_yields_files_links_and_empty_directories_in_order(root: Path, victim: Path) -> None:
    (root / "a" / "link").symlink_to(victim)
    os.mkfifo(root / "fifo")
    with UntrustedTree(root) as tree:
        found = [(entry.path, entry.kind) for entry in tree.walk()]
        assert tree.read_link("a/link") == str(victim)
    assert found == [
        ("a/b/file", EntryKind.FILE),
        ("a/link", EntryKind.LINK),
        ("a.txt", EntryKind.FILE),
        ("empty", EntryKind.FOLDER),
        ("fifo", EntryKind.SPECIAL),
    ]


USES: dict[str, Callable[[UntrustedTree, Path], object]] = {
    "open": lambda tree, _: tree.open_file("a/file"),
    "create": lambda tree, _: tree.create_file("a/file"),
    "create in a new directory": lambda tree, _: tree.make_directory("a/new/deep"),
    "link": lambda tree, _: tree.create_link("a/file", "/"),
    "list": lambda tree, _: tree.entries("a"),
    "list below": lambda tree, _: tree.entries("a/sub"),
    "look": lambda tree, _: tree.find("a/file"),
    "make": lambda tree, _: tree.make_directory("a"),
    "move in": lambda tree, other: tree.move_in(other, "a/file"),
    "move out": lambda tree, other: tree.move_out("a/file", other),
    "remove below": lambda tree, _: tree.remove("a/file"),
    "remove a directory below": lambda tree, _: tree.remove("a/sub"),
    "begin there": lambda tree, _: UntrustedTree(tree.root, "a"),
    "begin below": lambda tree, _: UntrustedTree(tree.root, "a/sub"),
}


@pytest.mark.parametrize("use", USES)
def test_no_directory_that_is_a_link_is_used(
    root: Path, victim: Path, tmp_path: Path, use: str
) -> None:
    (root / "a").rename(root / "before")
    (root / "a").symlink_to(victim)
    other = tmp_path / "other"
    other.write_text("other")
    with UntrustedTree(root) as tree, pytest.raises(HostError, match="link"):
        USES[use](tree, other)
    assert other.read_text() == "other"


@pytest.mark.parametrize("path", ["../victim/file", "a/../../victim/file", "/etc/passwd", "", ".."])
def test_no_path_leads_out(root: Path, victim: Path, path: str) -> None:
    assert victim.exists()
    with UntrustedTree(root) as tree:
        for use in (tree.open_file, tree.create_file, tree.remove, tree.find):
            with pytest.raises(HostError):
                use(path)
        if path:
            with pytest.raises(HostError):
                tree.make_directory(path)


def test_links_are_replaced_or_removed_and_not_followed(root: Path, victim: Path) -> None:
    for name in ("file", "gone", "folder"):
        (root / name).symlink_to(victim / ("file" if name == "file" else ""))
    with UntrustedTree(root) as tree:
        with tree.create_file("file") as file:
            file.write(b"new")
        tree.remove("gone")
        tree.create_link("folder", "elsewhere")
        tree.remove("never was there")
    assert (root / "file").read_text() == "new"
    assert not (root / "gone").is_symlink()
    assert (root / "folder").readlink() == Path("elsewhere")


def test_only_regular_files_are_opened(root: Path, victim: Path, tmp_path: Path) -> None:
    os.mkfifo(root / "fifo")
    (root / "link").symlink_to(victim / "file")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(root / "socket"))
    with (root / "huge").open("wb") as file:
        file.truncate(1 << 42)
    disk = os.statvfs(root)
    with UntrustedTree(root) as tree:
        for name in ("fifo", "link", "socket", "a"):
            with pytest.raises(HostError, match="not a file"):
                tree.open_file(name)
        if disk.f_blocks * disk.f_frsize < 1 << 42:
            with pytest.raises(HostError, match="more than its disk"):
                tree.open_file("huge")
        with pytest.raises(HostError, match="not a file"):
            tree.move_out("link", tmp_path / "taken")
        with tree.open_file("a.txt") as file:
            assert file.read() == b"text"
        tree.move_out("a.txt", tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "text"


@pytest.mark.parametrize(
    ("pattern", "is_there"),
    [
        ("*.txt", True),
        ("a", True),
        ("a/b", True),
        ("a/*/file", True),
        ("**/file", True),
        ("**/b/*", True),
        ("a/**/file", True),
        ("*.whl", False),
        ("file", False),
        ("outside/*", False),
        ("outside/sub/file", False),
        ("**/sub/*", False),
    ],
)
def test_patterns(root: Path, victim: Path, pattern: str, is_there: bool) -> None:
    (root / "outside").symlink_to(victim)
    with UntrustedTree(root) as tree:
        assert tree.has(pattern) is is_there


def _deep(folder: Path, depth: int) -> None:
    """Nest directories deeper than any path can be."""
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.close(handle)


def test_the_deepest_tree_is_refused_and_removed(root: Path) -> None:
    _deep(root, 1200)
    with UntrustedTree(root) as tree:
        with pytest.raises(HostError, match="256 directories"):
            list(tree.walk())
        assert tree.disk_usage() > 0
        tree.remove("d")
    assert sorted(path.name for path in root.iterdir()) == ["a", "a.txt", "empty"]
    _deep(root, 300)
    remove_tree(root)
    assert not root.exists()


def test_removing_leaves_what_is_linked(root: Path, victim: Path) -> None:
    (root / "a" / "link").symlink_to(victim)
    (root / "a" / "b" / "link").symlink_to(victim / "file")
    os.link(victim / "file", root / "a" / "hard")
    (root / "a" / "b").chmod(0)
    (root / "a").chmod(0o500)
    remove_tree(root)
    assert not root.exists()
    remove_tree(root)


def test_names_of_all_kinds(root: Path) -> None:
    names = [b"new\nline", b"\xff\xfe", b"\x1b[31mred", b"-rf", b"a\\b", b" "]
    for name in names:
        (root / os.fsdecode(name)).touch()
    with UntrustedTree(root) as tree:
        found = {os.fsencode(entry.path) for entry in tree.walk()}
        assert found >= set(names)
        with pytest.raises(HostError, match=r"x1b\[31mred. is"):
            tree.open_file("\x1b[31mred/x")
        for name in names:
            tree.remove(os.fsdecode(name))
    assert sorted(path.name for path in root.iterdir()) == ["a", "a.txt", "empty"]


def test_a_pattern_takes_no_time_without_end(tmp_path: Path) -> None:
    """A step's `outputs` may have been written by a stranger."""
    (tmp_path / "/".join("a" * 40)).mkdir(parents=True)
    with UntrustedTree(tmp_path) as tree:
        assert tree.has("**/" * 40 + "a")
        assert not tree.has("**/" * 40 + "b")
