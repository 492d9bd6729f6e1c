"""The life of a channel after publishing, by the commands, on a directory and on S3."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from tests.support.channel_reader import Reader, read_all, told
from tests.support.channels import conda, put, wheel
from tests.support.helpers import Command, Output
from tests.support.services import S3Server

from torchyard.errors import SelectionError, UsageError
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ROOTS
from torchyard.store.objects import Objects

pytestmark = pytest.mark.integration

VERSIONS = ("2.14.0.dev20261101", "2.14.0.dev20261102", "2.14.0.dev20261103")


class Places(NamedTuple):
    """Two channels, side by side."""

    nightly: str
    release: str


@pytest.fixture(params=["directory", "s3"])
def places(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Places]:
    monkeypatch.chdir(tmp_path)
    if request.param == "directory":
        yield Places(str(tmp_path / "nightly"), str(tmp_path / "release"))
        return
    server: S3Server = request.getfixturevalue("s3_server")
    place = server.place()
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    yield Places(f"{place.url}/nightly", f"{place.url}/release")


def _ok(output: Output) -> str:
    assert output.code == 0, output.err
    return output.out


def _json(output: Output) -> dict[str, object]:
    found: dict[str, object] = msgspec.json.decode(_ok(output))
    return found


def _publish(torchyard: Command, place: str, version: str, folder: Path) -> None:
    folder = folder / version
    folder.mkdir()
    for made in (
        wheel("torch", version, "cpu"),
        wheel("torch", version, "cu130"),
        wheel("helper", version, requires=["torch"]),
    ):
        (folder / made.entry.file).write_bytes(made.data)
    _ok(torchyard("publish", folder, "--to", place))


def _shown(place: str) -> dict[str, frozenset[str]]:
    """What the pages of a channel show; every link is followed, every hash compared."""
    channel = Channel.at(place)
    found = read_all(Reader(channel.objects.read), channel.head())
    assert found == told(channel)
    return found


def _versions(place: str) -> set[str]:
    return {file.split("-")[1].partition("+")[0] for file in _shown(place)["simple/torch simple"]}


def test_the_life_of_a_nightly_channel(torchyard: Command, places: Places, tmp_path: Path) -> None:
    for version in VERSIONS:
        _publish(torchyard, places.nightly, version, tmp_path)
    nightly = places.nightly
    assert _versions(nightly) == set(VERSIONS)

    # take one back, and offer it again
    yanked = torchyard(
        "channel", "yank", nightly, f"torch=={VERSIONS[2]}", "--reason", "slow", "--json"
    )
    assert len(_json(yanked)["files"]) == 2  # type: ignore[arg-type]
    page = Channel.at(nightly).objects.read("cu130/torch/index.html") or b""
    assert page.count(b'data-yanked="slow"') == 1
    wrong = torchyard("channel", "promote", nightly, places.release, f"torch=={VERSIONS[2]}")
    assert (wrong.code, "were yanked: slow" in wrong.err) == (15, True)
    assert "offered" in _ok(
        torchyard("channel", "yank", nightly, f"torch=={VERSIONS[2]}", "--undo")
    )

    # pin the first, and prune all but the last
    _ok(
        torchyard(
            "channel", "pin", nightly, VERSIONS[0], "--as", "first", "--reason", "before the change"
        )
    )
    dry = _json(torchyard("channel", "prune", nightly, "--keep", "1", "--dry-run", "--json"))
    assert (len(dry["hidden"]), _versions(nightly)) == (3, set(VERSIONS))  # type: ignore[arg-type]
    _ok(torchyard("channel", "prune", nightly, "--keep", "1"))
    assert _versions(nightly) == {VERSIONS[0], VERSIONS[2]}

    # go back, and forth again
    assert "shown" in _ok(torchyard("channel", "rollback", nightly, "--last"))
    assert _versions(nightly) == set(VERSIONS)
    _ok(torchyard("channel", "rollback", nightly, "--last"))
    assert _versions(nightly) == {VERSIONS[0], VERSIONS[2]}
    _publish(torchyard, nightly, "2.14.0.dev20261104", tmp_path)

    # delete what has been hidden; one can no longer go back to it
    gone = [
        meta.key
        for meta in Channel.at(nightly).objects.list("packages/")
        if VERSIONS[1] in meta.key
    ]
    assert len(gone) == 6
    time.sleep(1.1)  # moments are told in seconds
    done = _json(torchyard("channel", "prune", nightly, "--grace", "0", "--orphans", "--json"))
    assert set(done["deleted"]) <= set(gone)  # type: ignore[call-overload]
    left = [meta.key for meta in Channel.at(nightly).objects.list("packages/")]
    assert not set(gone) & set(left)
    refused = torchyard("channel", "rollback", nightly, "--generation", "1")
    assert (refused.code, "can't go back to generation 1" in refused.err) == (5, True)
    assert _versions(nightly) == {VERSIONS[0], VERSIONS[2], "2.14.0.dev20261104"}
    log = _ok(torchyard("channel", "log", nightly))
    assert "prune" in log
    assert _ok(torchyard("channel", "mend", nightly)).endswith("0 pages mended\n")


def test_promoting_a_release(torchyard: Command, places: Places, tmp_path: Path) -> None:
    _publish(torchyard, places.nightly, "2.14.0", tmp_path)
    args = ("channel", "promote", places.nightly, places.release, "torch==2.14.0", "helper==2.14.0")
    dry = _json(torchyard(*args, "--dry-run", "--json"))
    assert [file["new"] for file in dry["files"]] == [True] * 3  # type: ignore[attr-defined]
    promoted = _json(torchyard(*args, "--json"))
    assert promoted["generation"] == 1
    assert _json(torchyard(*args, "--json"))["generation"] == 1
    assert _shown(places.release) == _shown(places.nightly)

    # the version alone
    plain = f"{places.release}-plain"
    dropped = torchyard(
        "channel", "promote", places.nightly, plain, "torch", "helper", "--local", "drop"
    )
    assert "3 files are new" in _ok(dropped)
    assert _shown(plain)["simple/torch cpu"] == {"torch-2.14.0-py3-none-any.whl"}
    status = torchyard("channel", "status", plain, "torch", "archived", "--reason", "it is done")
    assert "torch is archived" in status.out
    late = torchyard("publish", tmp_path / "2.14.0", "--to", plain)
    assert (late.code, "is archived and takes no new files: it is done" in late.err) == (15, True)


def test_a_channel_that_is_moved_goes_on(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Directories and buckets know pages by the same tags."""
    place = s3_server.place()
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    near, far = Channel.at(str(tmp_path / "here"), make=True), Objects(place.url)
    put(near, wheel("torch", "1.0", "cpu"), conda("torch", "1.0"))
    for meta in near.objects.list(""):
        far.write(meta.key, near.objects.read(meta.key) or b"")
    moved = Channel(far)
    assert moved.mend([*moved.head().parts, ROOTS]) == []
    for version in ("1.1", "1.2"):
        put(moved, wheel("torch", version, "cpu"), conda("torch", version))
        found = read_all(Reader(far.read), moved.head())
        assert found == told(moved)
        assert any(version in file for file in found["simple/torch cpu"])
    assert moved.mend([*moved.head().parts, ROOTS]) == []


def test_a_server_copies_within_its_bucket(places: Places) -> None:
    one, other = Objects(places.nightly), Objects(places.release)
    one.create("packages/a b+c", b"bytes", {"Content-Type": "text/plain"})
    is_bucket = one.folder is None
    assert other.copy("packages/a b+c", one) is is_bucket
    assert other.read("packages/a b+c") == (b"bytes" if is_bucket else None)


def test_a_pin_is_what_pip_takes(torchyard: Command, tmp_path: Path) -> None:
    nightly, archive = tmp_path / "nightly", tmp_path / "archive"
    for version in VERSIONS[:2]:
        _publish(torchyard, str(nightly), version, tmp_path)
    _ok(torchyard("channel", "pin", nightly, VERSIONS[0], "--to", archive))
    for place in (nightly, archive):
        into = tmp_path / f"from-{place.name}"
        argv = ["-m", "pip", "download", "--quiet", "--require-hashes", "--no-cache-dir"]
        argv += ["--index-url", f"{place.as_uri()}/cu130/", "--dest", str(into)]
        argv += ["--requirement", str(place / f"pins/{VERSIONS[0]}/cu130.txt")]
        subprocess.run([sys.executable, *argv], check=True)
        assert sorted(path.name for path in into.iterdir()) == [
            f"helper-{VERSIONS[0]}-py3-none-any.whl",
            f"torch-{VERSIONS[0]}+cu130-py3-none-any.whl",
        ]
    _ok(torchyard("channel", "prune", nightly, "--keep", "1"))
    assert _versions(str(nightly)) == set(VERSIONS[:2])
    _ok(torchyard("channel", "pin", nightly, "--remove", VERSIONS[0]))
    _ok(torchyard("channel", "prune", nightly, "--keep", "1"))
    assert _versions(str(nightly)) == {VERSIONS[1]}


@pytest.mark.parametrize(
    ("args", "code", "what"),
    [
        (("channel", "yank", "torch"), 2, "a reason is missing"),
        (("channel", "yank", "torch", "--undo", "--reason", "x"), 2, "--undo needs no reason"),
        (("channel", "yank", "torhc", "--reason", "x"), 5, "did you mean `torch`?"),
        (("channel", "rollback"), 2, "where to?"),
        (("channel", "rollback", "--last", "--generation", "1"), 2, "contradict"),
        (("channel", "rollback", "--generation", "7"), 5, "can't go back to generation 7"),
        (("channel", "pin"), 2, "which version?"),
        (("channel", "pin", "9.9"), 5, "has nothing that `*==9.9` names"),
        (("channel", "pin", "--remove", "what"), 5, "no pin `what`"),
        (("channel", "prune", "--project", "torch"), 2, "--project has no effect"),
        (("channel", "prune", "--grace", "soon"), 2, "is not a number with one of the units"),
    ],
)
def test_mistakes_are_told(
    torchyard: Command, tmp_path: Path, args: tuple[str, ...], code: int, what: str
) -> None:
    _publish(torchyard, str(tmp_path / "channel"), "1.0", tmp_path)
    group, command, *rest = args
    output = torchyard(group, command, tmp_path / "channel", *rest)
    assert (output.code, what in output.err) == (code, True), output.err
    assert Channel.at(str(tmp_path / "channel")).head().generation == 1
    nowhere = torchyard(group, command, tmp_path / "nowhere", *rest)
    assert nowhere.code == (code if code == UsageError.exit_code else SelectionError.exit_code)
