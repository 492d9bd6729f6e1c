"""Files of the store that stay on a machine: right, bounded, and never in the way."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from torchyard.model.result import Tree
from torchyard.store.keys import BLOBS
from torchyard.store.local_cache import LocalCache
from torchyard.store.store import Store
from torchyard.store.trees import Writer, fetch_tree

LIMIT = 10**6


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.at(str(tmp_path / "store"))


def stored(store: Store, folder: Path, **sizes: int) -> Tree:
    """Store a tree of files that no other tree has."""
    folder.mkdir(parents=True)
    for name, size in sizes.items():
        (folder / name).write_bytes(os.urandom(size))
        (folder / name).chmod(0o755)
        os.utime(folder / name, (1, 1))
    return Writer(store).add_tree(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def a_day_passes(folder: Path) -> None:
    """For what is there: a machine's clock for files may stand still between two uses."""
    for path in folder.rglob("*"):
        os.utime(path, (path.stat().st_mtime - 86400,) * 2)


def on_disk(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def test_the_second_job_fetches_nothing(store: Store, tmp_path: Path) -> None:
    tree = stored(store, tmp_path / "made", large=200_000, small=3, empty=0)
    copies = LocalCache(tmp_path / "copies", LIMIT)
    assert fetch_tree(store, tree, tmp_path / "first", copies) == 200_003
    shutil.rmtree(tmp_path / "store" / BLOBS)
    assert fetch_tree(store, tree, tmp_path / "second", copies) == 0
    assert contents(tmp_path / "second") == contents(tmp_path / "made")
    status = (tmp_path / "second" / "large").stat()
    assert status.st_mtime == 1
    assert status.st_mode & 0o100


def test_a_job_does_not_change_what_the_next_one_gets(store: Store, tmp_path: Path) -> None:
    tree = stored(store, tmp_path / "made", file=1000)
    copies = LocalCache(tmp_path / "copies", LIMIT)
    for name in ("first", "second", "third"):
        assert fetch_tree(store, tree, tmp_path / name, copies) == (1000 if name == "first" else 0)
        assert contents(tmp_path / name) == contents(tmp_path / "made")
        with (tmp_path / name / "file").open("r+b") as file:
            file.write(b"changed in its place")


def test_a_damaged_copy_is_fetched_again(store: Store, tmp_path: Path) -> None:
    tree = stored(store, tmp_path / "made", file=1000)
    copies = LocalCache(tmp_path / "copies", LIMIT)
    fetch_tree(store, tree, tmp_path / "first", copies)
    (copy,) = (path for path in (tmp_path / "copies").rglob("*") if path.is_file())
    for damage in (b"", b"x" * 1000):
        copy.write_bytes(damage)
        shutil.rmtree(tmp_path / "first")
        assert fetch_tree(store, tree, tmp_path / "first", copies) == 1000
        assert contents(tmp_path / "first") == contents(tmp_path / "made")
    assert fetch_tree(store, tree, tmp_path / "first", copies) == 0


def test_what_was_made_here_is_taken_over(store: Store, tmp_path: Path) -> None:
    tree = stored(store, tmp_path / "out", one=5000, two=6000)
    before = contents(tmp_path / "out")
    LocalCache(tmp_path / "copies", LIMIT).take(tree, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())
    assert fetch_tree(store, tree, tmp_path / "in", LocalCache(tmp_path / "copies", LIMIT)) == 0
    assert contents(tmp_path / "in") == before


def test_what_was_not_used_for_the_longest_time_goes_first(store: Store, tmp_path: Path) -> None:
    trees = {name: stored(store, tmp_path / name, file=300_000) for name in "abcd"}

    def fetch(name: str) -> int:
        a_day_passes(tmp_path / "copies")
        copies = LocalCache(tmp_path / "copies", LIMIT)
        return fetch_tree(store, trees[name], tmp_path / "in" / name, copies)

    assert [fetch(name) for name in "abcabdacb"] == [
        *(300_000, 300_000, 300_000),
        *(0, 0),
        300_000,  # d comes, and c goes
        0,
        300_000,  # c comes, and b goes
        300_000,
    ]
    assert on_disk(tmp_path / "copies") <= LIMIT


def test_what_is_larger_than_the_limit_pushes_nothing_out(store: Store, tmp_path: Path) -> None:
    usual = stored(store, tmp_path / "usual", file=300_000)
    huge = stored(store, tmp_path / "huge", one=600_000, two=600_000)
    copies = LocalCache(tmp_path / "copies", LIMIT)
    fetch_tree(store, usual, tmp_path / "in", copies)
    assert fetch_tree(store, huge, tmp_path / "in", copies) == 1_200_000
    copies.take(huge, tmp_path / "huge")
    assert fetch_tree(store, huge, tmp_path / "in", copies) == 1_200_000
    assert fetch_tree(store, usual, tmp_path / "in", copies) == 0


def test_what_killed_writers_left_goes_in_its_turn(store: Store, tmp_path: Path) -> None:
    left = tmp_path / "copies" / "ab" / "cd.part"
    left.parent.mkdir(parents=True)
    left.write_bytes(bytes(900_000))
    os.utime(left, (1, 1))
    tree = stored(store, tmp_path / "made", file=300_000)
    copies = LocalCache(tmp_path / "copies", LIMIT)
    fetch_tree(store, tree, tmp_path / "in", copies)
    assert not left.exists()
    assert fetch_tree(store, tree, tmp_path / "in", copies) == 0


def test_many_at_once_get_what_they_asked_for(store: Store, tmp_path: Path) -> None:
    trees = [stored(store, tmp_path / str(n), file=250_000, other=100_000) for n in range(4)]

    def fetch(number: int) -> None:
        place = tmp_path / "in" / str(number)
        copies = LocalCache(tmp_path / "copies", LIMIT)
        with copies.in_turn(str(number % 4)):
            fetch_tree(store, trees[number % 4], place, copies)
        assert contents(place) == contents(tmp_path / str(number % 4))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fetch, range(40)))
    assert not list((tmp_path / "copies").glob("*.lock"))
