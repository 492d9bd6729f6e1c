"""Conda channels and listings of zips: what is written, when, and in which order."""

import json
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from tests.support.channels import LATER, NOW, adding, without

from torchyard.errors import BuildError
from torchyard.host.zstd import decompress
from torchyard.index.conda.repodata import record_of
from torchyard.index.entry import WHOLE, Entry, State
from torchyard.package.conda.name import conda_name
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason, Edit
from torchyard.publish.channel.layout import PartName, key_of, pages, parse_part

PART = "conda/linux-64"
FOLDER = PART
Told = Mapping[str, dict[str, object]]


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel.at(str(tmp_path / "channel"), make=True)


def package(name: str, version: str = "1.0", suffix: str = ".conda") -> Entry:
    index = {"name": name, "version": version, "build": "h1_0", "depends": ["b >=1"]}
    digest = sha256(f"{name}{version}{suffix}".encode()).hexdigest()
    return Entry(
        file=f"{name}-{version}-h1_0{suffix}",
        version=version,
        variant="cpu",
        sha256=digest,
        size=7,
        uploaded=NOW,
        record=record_of(json.dumps(index).encode(), sha256=digest, md5="ab" * 16, size=7),
    )


def yanking(file: str) -> Edit:
    def edit(state: State) -> State:
        changed = (
            msgspec.structs.replace(entry, yanked="broken") if entry.file == file else entry
            for entry in state.entries
        )
        return msgspec.structs.replace(state, entries=tuple(changed))

    return edit


def commit(channel: Channel, edit: Edit) -> None:
    channel.commit({PART: edit}, LATER)


def get(channel: Channel, path: str) -> bytes:
    data = channel.objects.read(path)
    assert data is not None, path
    return data


def repodata(channel: Channel, folder: str = FOLDER) -> dict[str, Told]:
    """What `repodata.json` says, which must be what its compressed twin says."""
    data = get(channel, f"{folder}/repodata.json")
    assert decompress(get(channel, f"{folder}/repodata.json.zst")) == data
    told: dict[str, Told] = json.loads(data)
    return told


def shards(channel: Channel, folder: str = FOLDER) -> dict[str, dict[str, Told]]:
    """What the shards say, each at the address that its bytes have."""
    index = msgspec.msgpack.decode(
        decompress(get(channel, f"{folder}/repodata_shards.msgpack.zst"))
    )
    assert index["version"] == 1
    assert index["info"]["subdir"] == folder.removeprefix("conda/")
    found = {}
    for name, digest in index["shards"].items():
        data = get(channel, f"{folder}/shards/{digest.hex()}.msgpack.zst")
        assert sha256(data).digest() == digest
        found[name] = msgspec.msgpack.decode(decompress(data))
    return found


def all_shards(channel: Channel) -> set[str]:
    return {found.key for found in channel.objects.list(f"{FOLDER}/shards")}


def test_a_record_is_what_the_package_says_and_its_bytes() -> None:
    index = b'{"version": "1.0", "name": "a", "build": "0", "timestamp": 5}'
    record = record_of(
        index, sha256="cd", md5="ab", size=9, run_exports=b'{"weak": ["a >=1.0,<2"]}'
    )
    assert bytes(record) == (
        b'{"build":"0","md5":"ab","name":"a","run_exports":{"weak":["a >=1.0,<2"]},'
        b'"sha256":"cd","size":9,"timestamp":5,"version":"1.0"}'
    )


@pytest.mark.parametrize("index", [b"[]", b"{", b'{"name":"a"}', b""])
def test_a_package_that_does_not_say_what_it_is_has_no_record(index: bytes) -> None:
    with pytest.raises(BuildError, match="can't be read"):
        record_of(index, sha256="", md5="", size=0)


def test_broken_run_exports_are_told() -> None:
    index = b'{"version": "1.0", "name": "a", "build": "0"}'
    with pytest.raises(BuildError, match="run_exports"):
        record_of(index, sha256="", md5="", size=0, run_exports=b'{"weak": 1}')


def test_packages_are_listed_by_format(channel: Channel) -> None:
    commit(channel, adding(package("a"), package("a", "0.9", ".tar.bz2"), package("b")))
    told = repodata(channel)
    assert list(told["packages"]) == ["a-0.9-h1_0.tar.bz2"]
    assert list(told["packages.conda"]) == ["a-1.0-h1_0.conda", "b-1.0-h1_0.conda"]
    assert told["packages.conda"]["b-1.0-h1_0.conda"] == json.loads(bytes(package("b").record))


def test_shards_say_what_repodata_says(channel: Channel) -> None:
    names = ("a", "a-b", "a.b", "ab", "a-b-c")
    every = [package(name, version) for name in names for version in ("1.0", "2.0")]
    commit(channel, adding(*every, package("a", "0.9", ".tar.bz2")))
    commit(channel, yanking("a-1.0-h1_0.conda"))
    told, found = repodata(channel), shards(channel)
    assert set(found) == set(names)
    for sort in ("packages", "packages.conda"):
        split = {
            file: record | {key: record[key].hex() for key in ("md5", "sha256")}  # type: ignore[attr-defined]
            for shard in found.values()
            for file, record in shard[sort].items()
        }
        assert split == told[sort]
    for name, shard in found.items():
        files = [*shard["packages"], *shard["packages.conda"], *shard["removed"]]
        assert {conda_name(file) for file in files} == {name}


def test_a_yanked_package_is_told_as_removed(channel: Channel) -> None:
    commit(channel, adding(package("a"), package("a", "2.0")))
    commit(channel, yanking("a-2.0-h1_0.conda"))
    told = repodata(channel)
    assert list(told["packages.conda"]) == ["a-1.0-h1_0.conda"]
    assert list(told["removed"]) == ["a-2.0-h1_0.conda"]
    assert list(shards(channel)["a"]["removed"]) == ["a-2.0-h1_0.conda"]


def test_only_shards_of_changed_names_are_written(channel: Channel) -> None:
    commit(channel, adding(package("a"), package("b")))
    before = all_shards(channel)
    commit(channel, adding(package("a", "2.0")))
    after = all_shards(channel)
    assert before < after
    assert len(after - before) == 1
    commit(channel, without("b-1.0-h1_0.conda"))
    assert all_shards(channel) == after, "nobody deletes what readers may still ask for"
    assert set(shards(channel)) == {"a"}


def test_what_came_back_has_the_same_shard_and_another_index(channel: Channel) -> None:
    commit(channel, adding(package("a")))
    index = get(channel, f"{FOLDER}/repodata_shards.msgpack.zst")
    digests = channel.state(channel.head(), PART).shards
    commit(channel, adding(package("a", "2.0")))
    commit(channel, without("a-2.0-h1_0.conda"))
    assert channel.state(channel.head(), PART).shards == digests
    assert get(channel, f"{FOLDER}/repodata_shards.msgpack.zst") != index


def test_there_is_always_a_noarch(channel: Channel) -> None:
    head = channel.commit({PART: adding(package("a"))}, LATER)
    assert list(head.parts) == ["conda/noarch", PART]
    assert repodata(channel, "conda/noarch")["packages.conda"] == {}
    assert shards(channel, "conda/noarch") == {}
    state = head.parts["conda/noarch"].state
    head = channel.commit({PART: adding(package("b"))}, LATER)
    assert head.parts["conda/noarch"].state == state
    assert len(head.log[-1].parts) == 1


def test_the_same_files_give_the_same_pages(tmp_path: Path) -> None:
    every = [package("a"), package("b"), package("a", "2.0")]
    written = []
    for name, order in (("one", every), ("other", every[::-1])):
        channel = Channel.at(str(tmp_path / name), make=True)
        commit(channel, adding(*order))
        written.append({found.key: get(channel, found.key) for found in channel.objects.list(PART)})
    assert written[0] == written[1]


def test_a_dead_writers_pages_are_mended(channel: Channel) -> None:
    commit(channel, adding(package("a")))
    old = {path: get(channel, path) for path in channel.state(channel.head(), PART).tags}
    commit(channel, adding(package("b")))
    new = {path: get(channel, path) for path in old}
    for path, data in old.items():
        channel.objects.write(path, data)
    assert set(channel.mend([PART])) == set(old)
    assert {path: get(channel, path) for path in old} == new


# ------------------------------------------------------------------------------------- libtorch


def archive(version: str, variant: str, kind: str = "shared") -> Entry:
    file = f"libtorch-{kind}-{version}+{variant}.zip"
    return Entry(
        file=file,
        version=f"{version}+{variant}",
        variant=variant,
        sha256=sha256(file.encode()).hexdigest(),
        size=12_345_678,
        uploaded=NOW,
    )


ZIPS = (
    archive("2.9.0", "cpu"),
    archive("2.10.0", "cpu"),
    archive("2.10.0", "cpu", "static"),
    archive("2.10.0", "cu130"),
    archive("2.11.0", "cpu"),
)


def put_zips(channel: Channel) -> None:
    channel.commit({"libtorch/torch": adding(*ZIPS)}, LATER)
    newest = ZIPS[-1].file
    channel.commit({"libtorch/torch": yanking(newest)}, LATER)


def test_latest_is_the_newest_version_that_nobody_took_back(channel: Channel) -> None:
    put_zips(channel)
    told = json.loads(get(channel, "libtorch/torch/cpu/latest.json"))
    assert told["latest"] == "2.10.0"
    files = {file["file"]: file for file in told["files"]}
    assert set(files) == {ZIPS[1].file, ZIPS[2].file}
    one = files[ZIPS[1].file]
    assert (one["sha256"], one["size"]) == (ZIPS[1].sha256, ZIPS[1].size)
    assert one["url"] == f"../../../{key_of(parse_part('libtorch/torch'), ZIPS[1])}".replace(
        "+", "%2B"
    )


def test_listings_have_the_files_of_their_variant(channel: Channel) -> None:
    put_zips(channel)
    for folder, zips in (("", ZIPS), ("cpu/", (*ZIPS[:3], ZIPS[4])), ("cu130/", ZIPS[3:4])):
        told = json.loads(get(channel, f"libtorch/torch/{folder}index.json"))
        assert {file["file"] for file in told["files"]} == {one.file for one in zips}
        page = get(channel, f"libtorch/torch/{folder}index.html").decode()
        assert all(one.sha256 in page for one in zips)
        assert page.count('<th scope="row">') == len(zips)
    first = json.loads(get(channel, "libtorch/torch/index.json"))["files"][0]
    assert (first["version"], first["yanked"]) == ("2.11.0+cpu", "broken")
    assert "yanked: broken" in get(channel, "libtorch/torch/index.html").decode()


def test_links_of_listings_lead_to_the_zips(channel: Channel) -> None:
    key = key_of(PartName("libtorch", "torch"), ZIPS[0])
    channel.objects.create(key, b"zip")
    put_zips(channel)
    for folder in ("libtorch/torch", "libtorch/torch/cpu"):
        page = get(channel, f"{folder}/index.html").decode()
        up = "../" * (folder.count("/") + 1)
        assert f'href="{up}{key.replace("+", "%2B")}"' in page


def test_projects_with_zips_are_listed(channel: Channel) -> None:
    put_zips(channel)
    channel.commit({"libtorch/vision": adding(archive("1.0", "cpu"))}, LATER)
    page = get(channel, "libtorch/index.html").decode()
    assert '<a href="torch/">torch</a>' in page
    assert '<a href="vision/">vision</a>' in page


def test_what_people_write_is_shown_as_text() -> None:
    entry = msgspec.structs.replace(ZIPS[0], yanked="<script>")
    state = State(entries=(entry,), status="deprecated", status_reason="a & b")
    html = next(
        page.data.decode()
        for page in pages(parse_part("libtorch/torch"), state, [WHOLE])
        if page.path.endswith(".html")
    )
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "This project is deprecated: a &amp; b." in html


def test_the_first_shards_are_read_by_many_threads(channel: Channel) -> None:
    """In a process that has read none before: how msgspec reads a class is found out then."""
    channel.commit(
        {PART: adding(*(package(name) for name in "abcdefgh"))}, ChangeReason("first", NOW)
    )
    script = """\
import os, sys, threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from torchyard.index.conda.read import read_shard
sys.setswitchinterval(1e-6)
paths = list(Path(sys.argv[1]).glob("*.msgpack.zst"))
for _ in range(20):
    if not (child := os.fork()):
        gate = threading.Barrier(len(paths))
        with ThreadPoolExecutor(len(paths)) as pool:
            read = lambda path: (gate.wait(), read_shard(path.read_bytes(), path.name[:64]))[1]
            os._exit(any(found.faults for found in pool.map(read, paths)))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    words = [sys.executable, "-c", script, f"{channel.url}/{FOLDER}/shards"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0"] * 20
