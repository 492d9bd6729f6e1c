"""Objects that are swapped: of many who try at once, one wins."""

import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from torchyard.store.objects import LOCK, Objects
from torchyard.store.tags import content_tag

WRITERS = 16


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects(str(tmp_path / "store"))


def winners(objects: Objects, ask: Callable[[Objects, bytes], bool]) -> list[bytes]:
    """Let many try at once, each with a connection of its own; who was told that it won."""
    texts = [f"writer {number}".encode() for number in range(WRITERS)]
    others = [Objects(objects.url) for _ in texts]
    with ThreadPoolExecutor(WRITERS) as pool:
        won = list(pool.map(ask, others, texts))
    return [text for text, did in zip(texts, won, strict=True) if did]


def test_one_of_many_creates_an_object(objects: Objects) -> None:
    (text,) = winners(objects, lambda other, text: other.create("a/b", text))
    assert objects.read("a/b") == text


def test_one_of_many_swaps_an_object(objects: Objects) -> None:
    objects.write("a/b", b"old")
    tag = objects.tag("a/b")
    (text,) = winners(objects, lambda other, text: other.swap("a/b", text, tag))
    assert objects.read("a/b") == text


def test_one_of_many_is_first(objects: Objects) -> None:
    (text,) = winners(objects, lambda other, text: other.swap("a/b", text, None))
    assert objects.read("a/b") == text


def test_no_increment_is_lost(objects: Objects) -> None:
    objects.write("count", b"0 by nobody")

    def add(other: Objects, text: bytes) -> bool:
        while True:
            found = other.read_tagged("count")
            assert found is not None
            count = int(found[0].split()[0]) + 1
            if other.swap("count", b"%d by %b" % (count, text), found[1]):
                return True

    assert len(winners(objects, add)) == WRITERS
    assert (objects.read("count") or b"").startswith(b"%d " % WRITERS)


def test_the_tag_is_known_beforehand(objects: Objects) -> None:
    assert objects.tag("a") is None
    assert objects.read_tagged("a") is None
    assert objects.swap("a", b"one", None)
    assert objects.tag("a") == content_tag(b"one")
    assert objects.swap("a", b"two", content_tag(b"one"))
    assert objects.read_tagged("a") == (b"two", content_tag(b"two"))


def test_a_swap_against_another_object_or_none_fails(objects: Objects) -> None:
    assert not objects.swap("a", b"new", content_tag(b"never there"))
    assert objects.read("a") is None
    objects.write("a", b"there")
    assert not objects.swap("a", b"new", content_tag(b"never there"))
    assert not objects.swap("a", b"new", None)
    assert objects.read("a") == b"there"


def test_what_is_there_already_counts_as_swapped(objects: Objects) -> None:
    objects.write("a", b"new")
    assert objects.swap("a", b"new", content_tag(b"old"))
    assert objects.swap("a", b"new", None)


def test_what_is_deleted_while_one_looks_is_created(objects: Objects, tmp_path: Path) -> None:
    """Between `there is one` and a look at it, it may go; then there is room for ours."""
    file = tmp_path / "file"
    file.write_bytes(b"bytes")

    def again(other: Objects, _text: bytes) -> bool:
        for _ in range(20):
            other.create("a", file)
            other.delete(["a"])
        return False

    assert not winners(objects, again)
    assert objects.read("a") is None


@pytest.mark.parametrize(
    ("umask", "mode"), [(0o022, 0o600), (0o002, 0o660), (0o000, 0o666), (0o077, 0o600)]
)
def test_only_those_who_may_write_a_channel_can_hold_its_lock(
    tmp_path: Path, umask: int, mode: int
) -> None:
    """`flock` needs a file that can be read, and no more."""
    objects = Objects(str(tmp_path))
    before = os.umask(umask)
    try:
        for number in range(2):
            objects.write("page", b"old")
            assert objects.swap("page", b"new", content_tag(b"old"))
            assert (tmp_path / LOCK).stat().st_mode & 0o777 == mode, number
            (tmp_path / LOCK).chmod(0o666 & ~umask)  # as one that was made by an older torchyard
    finally:
        os.umask(before)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_stranger_cannot_hold_the_lock_of_a_channel() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        objects = Objects(folder)
        objects.write("page", b"old")
        assert objects.swap("page", b"new", content_tag(b"old"))
        for name, is_refused in (("page", False), (LOCK, True)):
            opens = ["sh", "-c", 'exec 9< "$0"', f"{folder}/{name}"]
            done = subprocess.run(opens, user=65534, stderr=subprocess.DEVNULL, check=False)
            assert bool(done.returncode) == is_refused
