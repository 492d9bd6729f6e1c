"""A core's build tree is restored, configured again, and nothing of it changes or looks newer."""

import os
from pathlib import Path

import pytest

from torchyard.toolchain.build_tree import keep_times, restore_tree

OLD = 1_000_000_000


def make_tree(folder: Path) -> Path:
    """Make a build tree, all of whose files and directories are old."""
    for name, text in {
        "src/a.cpp": "int a;",
        "build/empty.cpp": "",
        "build/a.cpp.o": "object",
        "build/lib/libx.so": "library",
        "build/build.ninja": "rules",
        "build/CMakeFiles/rules.ninja": "rules",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "build/empty").mkdir()
    (folder / "build/link").symlink_to("lib")
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (OLD, OLD), follow_symlinks=False)
    return folder


def test_a_restored_tree_is_the_same_with_its_times(tmp_path: Path) -> None:
    tree, copy = make_tree(tmp_path / "tree"), tmp_path / "copy"
    restore_tree(tree, copy)
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*"))
    assert names == sorted(str(path.relative_to(copy)) for path in copy.rglob("*"))
    for name in names:
        assert (copy / name).lstat().st_mtime == OLD, name
    assert (copy / "build/link").readlink() == Path("lib")


@pytest.mark.parametrize("name", ["src/a.cpp", "build/empty.cpp", "build/build.ninja"])
def test_what_a_tool_writes_in_place_does_not_change_the_input(tmp_path: Path, name: str) -> None:
    tree, copy = make_tree(tmp_path / "tree"), tmp_path / "copy"
    before = (tree / name).read_bytes()
    restore_tree(tree, copy)
    with (copy / name).open("r+b") as file:
        file.write(b"other")
    assert (tree / name).read_bytes() == before


@pytest.mark.parametrize("name", ["build/a.cpp.o", "build/lib/libx.so"])
def test_what_compilers_made_is_shared_and_protected(tmp_path: Path, name: str) -> None:
    tree, copy = make_tree(tmp_path / "tree"), tmp_path / "copy"
    restore_tree(tree, copy)
    assert (tree / name).samefile(copy / name)
    assert not (copy / name).stat().st_mode & 0o222


def test_files_that_a_configuration_writes_again_keep_their_times(tmp_path: Path) -> None:
    """PyTorch's writes `build/empty.cpp` each time, so all of it looked newer than its objects."""
    tree, copy = make_tree(tmp_path / "tree"), tmp_path / "copy"
    restore_tree(tree, copy)
    (copy / "build/empty.cpp").write_text("", encoding="utf-8")
    (copy / "src/a.cpp").write_text("int b;", encoding="utf-8")
    (copy / "build/new.cpp").write_text("", encoding="utf-8")
    for name in ("build/build.ninja", "build/CMakeFiles/rules.ninja"):
        (copy / name).write_text("rules", encoding="utf-8")
    assert keep_times(tree, copy) == [copy / "build/empty.cpp"]
    assert (copy / "build/empty.cpp").stat().st_mtime == OLD
    for name in ("src/a.cpp", "build/new.cpp", "build/build.ninja", "build/CMakeFiles/rules.ninja"):
        assert (copy / name).stat().st_mtime > OLD, name
