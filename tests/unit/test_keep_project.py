"""What a core's result keeps of the source for packages."""

from pathlib import Path

from torchyard.package.assemble.project import keep_project


def write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def kept(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def test_licences_the_description_and_the_first_suite_are_kept(tmp_path: Path) -> None:
    tree, folder = tmp_path / "tree", tmp_path / "out"
    names = ("LICENSE", "NOTICE.txt", "licenses/LICENSE-a", "pyproject.toml", "setup.py", "src/a.c")
    for name in (*names, "test/deep/test_a.py", "tests/test_b.py", "third_party/x/LICENSE"):
        write(tree / name)
    keep_project(tree, folder)
    assert kept(folder) == {
        "LICENSE",
        "NOTICE.txt",
        "licenses/LICENSE-a",
        "pyproject.toml",
        "test/deep/test_a.py",
    }


def test_a_suite_of_odd_files_does_not_end_a_build(tmp_path: Path) -> None:
    tree, folder = tmp_path / "tree", tmp_path / "out"
    write(tree / "tests/test_a.py")
    (tree / "tests/gone").symlink_to("nowhere")
    (tree / "tests/up").symlink_to("..", target_is_directory=True)
    (tree / "LICENSE").symlink_to("nowhere")
    keep_project(tree, folder)
    assert kept(folder) == {"test/test_a.py", "test/gone", "test/up"}


def test_a_tree_may_have_none_of_them(tmp_path: Path) -> None:
    assert keep_project(write(tmp_path / "tree/a").parent, tmp_path / "out") == []
