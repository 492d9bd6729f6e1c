"""What is found at a key is compared by size and digest: the same command makes it whole again."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.channels import conda, libtorch, put, wheel
from tests.unit.test_store import store_result, task_of

from torchyard.errors import PublishError, StoreError
from torchyard.host import durable
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.head import state_key
from torchyard.store.directory import DurableDirectory
from torchyard.store.keys import blob_key, pin_key
from torchyard.store.objects import Identity, Objects
from torchyard.store.pins import add_pin, list_pins
from torchyard.store.store import Store
from torchyard.store.transfer import copy
from torchyard.store.verify import verify

MADE = {
    "wheel": wheel("demo"),
    "large wheel": wheel("demo", size=9 << 20),
    "conda": conda("demo"),
    "libtorch": libtorch("1.0", "cpu"),
}
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "half": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "half zeros": lambda data: data[: len(data) // 2].ljust(len(data), b"\0"),
    "longer": lambda data: data + b"x",
}
TORN = [name for name in DAMAGE if name != "longer"]
"""What a power cut makes of a file."""


def damage(folder: str, key: str, kind: str, data: bytes) -> None:
    path = Path(folder, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(DAMAGE[kind](data))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "channel")


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("kind", TORN)
def test_a_package_that_a_power_cut_left_is_not_published(url: str, name: str, kind: str) -> None:
    made = MADE[name]
    damage(url, made.key, kind, made.data)
    put(Channel.at(url, make=True), made)
    assert Path(url, made.key).read_bytes() == made.data


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("kind", TORN)
def test_a_published_package_is_made_whole_by_publishing_it_again(
    url: str, name: str, kind: str
) -> None:
    made = MADE[name]
    channel = Channel.at(url, make=True)
    put(channel, made)
    damage(url, made.key, kind, made.data)
    generation = channel.head().generation
    put(channel, made)
    assert Path(url, made.key).read_bytes() == made.data
    assert channel.head().generation == generation


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_sidecar_is_made_whole_by_publishing_its_wheel_again(url: str, kind: str) -> None:
    made = MADE["wheel"]
    channel = Channel.at(url, make=True)
    put(channel, made)
    damage(url, f"{made.key}.metadata", kind, made.metadata)
    put(channel, made)
    assert Path(url, f"{made.key}.metadata").read_bytes() == made.metadata


def test_a_conda_package_with_other_bytes_is_still_refused(url: str) -> None:
    made = MADE["conda"]
    damage(url, made.key, "longer", made.data)
    with pytest.raises(PublishError, match="with other bytes"):
        put(Channel.at(url, make=True), made)
    Path(url, made.key).write_bytes(b"x" * len(made.data))
    with pytest.raises(PublishError, match="with other bytes"):
        put(Channel.at(url, make=True), made)


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_blob_is_made_whole_by_the_next_result_that_has_it(tmp_path: Path, kind: str) -> None:
    store = Store.at(str(tmp_path / "store"))
    first = store_result(store, tmp_path, task_of("a/b"), lib="the same bytes")
    (file,) = first.tree.files
    damage(store.url, blob_key(file.digest), kind, b"the same bytes")
    store_result(store, tmp_path, task_of("a/c"), lib="the same bytes")
    assert verify(store).is_clean


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_blob_is_made_whole_by_a_copy(tmp_path: Path, kind: str) -> None:
    source, target = Store.at(str(tmp_path / "source")), Store.at(str(tmp_path / "target"))
    result = store_result(source, tmp_path, task_of("a/b"), lib="the same bytes")
    (file,) = result.tree.files
    damage(target.url, blob_key(file.digest), kind, b"the same bytes")
    copy(source, target, [result])
    assert verify(target).is_clean


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_state_that_a_power_cut_left_is_written_again(
    url: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of states are unique per attempt; here, both attempts have the same one."""
    monkeypatch.setattr("secrets.token_hex", lambda _: "0" * 16)
    made = MADE["wheel"]
    channel = Channel.at(url, make=True)
    digest = put(channel, made).parts[made.part].state
    whole = Path(url, state_key(digest)).read_bytes()
    Path(url, "channel.json").unlink()
    damage(url, state_key(digest), kind, whole)
    put(Channel.at(url, make=True), made)
    assert Path(url, state_key(digest)).read_bytes() == whole


# ------------------------------------------------------------------------------------- files


def test_bytes_are_synced_before_they_get_their_name_and_names_before_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.at(str(tmp_path / "store"))
    done: list[str] = []
    fsync, link = os.fsync, os.link

    def synced(handle: int) -> None:
        done.append(os.path.relpath(Path(f"/proc/self/fd/{handle}").readlink(), store.url))
        fsync(handle)

    def linked(source: Path, target: Path, **options: bool) -> None:
        done.append(f"= {os.path.relpath(target, store.url)}")
        link(source, target, **options)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", linked)
    result = store_result(store, tmp_path, task_of("a/b"), lib="some bytes")
    (file,) = result.tree.files
    blob, manifest = blob_key(file.digest), f"results/{result.fingerprint[:2]}"
    places = [
        done.index(f"{blob}#1"),
        done.index(f"= {blob}"),
        done.index(str(Path(blob).parent)),
        done.index(f"= {manifest}/{result.fingerprint}.json"),
        done.index(manifest),
    ]
    assert places == sorted(places)
    assert {"blobs", "results", "."} <= set(done)


def test_what_another_process_has_written_is_synced_before_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    objects = Objects(str(tmp_path / "store"))
    Objects(objects.url).write("blobs/aa/name", b"bytes")
    monkeypatch.setattr("torchyard.store.directory.sync_folders", synced.extend)
    objects.ensure("blobs/aa/name", b"bytes", Identity(5, "not looked at"))
    objects.sync()
    root = Path(objects.url)
    assert set(synced) == {root, root / "blobs", root / "blobs/aa"}


@pytest.mark.parametrize("key", ["../outside", "a/../../outside", "/outside", "a//b", "a/./b", ""])
def test_no_object_is_outside_of_its_directory(tmp_path: Path, key: str) -> None:
    (tmp_path / "store").mkdir()
    with pytest.raises(StoreError, match="is not the name of an object"):
        DurableDirectory(tmp_path / "store").put(key, b"bytes", replace=True)
    assert not list((tmp_path / "store").iterdir())


def test_a_file_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"some"
        msg = "no more"
        raise PublishError(msg)

    path = tmp_path / "file"
    with pytest.raises(PublishError, match="no more"):
        durable.write_durably(path, pieces(), replace=True)
    durable.write_durably(path, [b"bytes"], replace=False)
    with pytest.raises(FileExistsError):
        durable.write_durably(path, [b"bytes"], replace=False)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    durable.replace_durably(path, b"others")
    assert path.read_bytes() == b"others"
    durable.sync_folders([tmp_path, tmp_path / "gone"])


def test_a_head_that_is_not_utf_8_is_reported(url: str) -> None:
    put(Channel.at(url, make=True), MADE["wheel"])
    Path(url, "channel.json").write_bytes(b'{"parts": {"\xff": {}}}')
    with pytest.raises(StoreError, match=r"of the channel .* can't be read"):
        Channel.at(url).head()


def test_a_pin_that_is_not_utf_8_is_reported(tmp_path: Path) -> None:
    store = Store.at(str(tmp_path))
    add_pin(store, "v1", [])
    Path(tmp_path, pin_key("v1")).write_bytes(b'{"results": ["\xff"]}')
    with pytest.raises(StoreError, match="the pin `v1` can't be read"):
        list(list_pins(store))
