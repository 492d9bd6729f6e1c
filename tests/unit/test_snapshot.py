"""A source directory is copied only if it is the one that was planned."""

from pathlib import Path

import pytest

from torchyard.errors import HostError
from torchyard.host.snapshot import copy_folder
from torchyard.host.tree import read_source_tree


def test_nothing_of_another_directory_is_copied(tmp_path: Path) -> None:
    """A spec names any directory, and would have had it copied before it was refused."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source/private.txt").write_text("something", encoding="utf-8")
    with pytest.raises(HostError, match="has changed since the plan was made"):
        copy_folder(tmp_path / "source", "0" * 64, tmp_path / "out", ())
    assert not list((tmp_path / "out").iterdir())


def test_files_that_are_left_out_do_not_count(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.txt").touch()
    planned = read_source_tree(str(source)).digest
    (source / "torchyard.toml").touch()
    copy_folder(source, planned, tmp_path / "out", [str(source / "torchyard.toml")])
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.txt"]
