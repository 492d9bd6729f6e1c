"""From one channel into another, on channels in directories."""

import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.channel_reader import Reader, read_all, told
from tests.support.channels import Death, Made, Mortal, put, wheel
from tests.support.helpers import Command

from torchyard.errors import PublishError, StoreError
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.gates import Demands, judge_all
from torchyard.publish.ops.promote import (
    Route,
    gather_packages,
    head_for,
    promote,
    without_local,
)
from torchyard.publish.ops.yank import set_status, yank
from torchyard.publish.publish import Published
from torchyard.publish.select import parse_selection

NOW = ChangeReason("promote", "2026-12-01T00:00:00Z")
FILES = (
    wheel("torch", "2.14.0", "cpu"),
    wheel("torch", "2.14.0", "cu130"),
    wheel("torch", "2.13.0", "cpu"),
    wheel("helper", "1.0", requires=["torch==2.14.0"]),
)


@pytest.fixture
def source(tmp_path: Path) -> Channel:
    channel = Channel.at(str(tmp_path / "test"), make=True)
    put(channel, *FILES)
    return channel


@pytest.fixture
def target(tmp_path: Path) -> Channel:
    return Channel.at(str(tmp_path / "release"), make=True)


def move(
    source: Channel, target: Channel, *selectors: str, drop: bool = False, variant: str = "*"
) -> Published:
    """Promote as the command does."""
    found = gather_packages(source, parse_selection(selectors, [variant]), NOW.at)
    assert target.objects.folder is not None
    scratch = target.objects.folder.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    route = Route(source, target, scratch)
    head = head_for(source, target, "release")
    if drop:
        found = without_local(route, head, found)
    verdict = judge_all(target, head, [one.package for one in found], Demands())
    if verdict.refusals:
        raise PublishError.of(verdict.refusals)
    return promote(route, head, found, NOW)


def check(channel: Channel) -> None:
    reader = Reader(channel.objects.read)
    assert read_all(reader, channel.head()) == told(channel)
    assert reader.reads > 0


def test_the_same_bytes_are_in_both(source: Channel, target: Channel) -> None:
    done = move(source, target, "*==2.14.0", "helper")
    assert {package.entry.file for package in done.new} == {
        made.entry.file for made in FILES if made.entry.version != "2.13.0+cpu"
    }
    state = target.state(done.head, "simple/torch")
    assert [(e.sha256, e.metadata, e.uploaded) for e in state.entries] == [
        (made.entry.sha256, made.entry.metadata, NOW.at) for made in FILES[:2]
    ]
    assert list(done.head.parts) == ["simple/torch", "simple/helper"]
    check(target)


def test_promoting_again_changes_nothing(source: Channel, target: Channel) -> None:
    first = move(source, target, "torch==2.14.0")
    again = move(source, target, "torch==2.14.0")
    assert (again.head, again.new, len(again.there)) == (first.head, (), 2)


def test_what_was_taken_back_is_refused(source: Channel, target: Channel) -> None:
    yank(source, parse_selection(["torch==2.14.0"], ["cpu"]), "wrong sums", NOW)
    with pytest.raises(PublishError, match=r"torch-2\.14\.0\+cpu.* was yanked: wrong sums"):
        move(source, target, "torch==2.14.0")
    assert len(move(source, target, "torch==2.14.0", variant="cu130").new) == 1
    set_status(source, "torch", "quarantined", "", NOW)
    with pytest.raises(PublishError, match="`simple/torch` is quarantined"):
        move(source, target, "torch==2.13.0")


def test_a_name_with_other_bytes_is_refused(source: Channel, target: Channel) -> None:
    other = wheel("torch", "2.14.0", "cpu", requires=["something"])
    put(target, other)
    with pytest.raises(PublishError) as caught:
        move(source, target, "torch==2.14.0", variant="cpu")
    whats = [diagnostic.what for diagnostic in caught.value.diagnostics]
    assert any(f"has a `{other.entry.file}` with other bytes" in what for what in whats)
    assert told(target)["simple/torch cpu"] == {other.entry.file}


def test_names_that_could_be_squatted_are_refused(source: Channel, target: Channel) -> None:
    with pytest.raises(PublishError, match="needs `torch`, which the channel does not have"):
        move(source, target, "helper")


@pytest.mark.parametrize("what", ["", ".metadata"])
def test_damage_is_noticed(source: Channel, target: Channel, what: str) -> None:
    source.objects.write(f"{FILES[0].key}{what}", b"something else")
    with pytest.raises(StoreError, match="does not match the channel's entry"):
        move(source, target, "torch==2.14.0")
    assert not target.head().generation


def _members(channel: Channel, made: Made | str) -> dict[str, bytes]:
    assert channel.objects.folder is not None
    path = channel.objects.folder / (made if isinstance(made, str) else made.key)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_local_versions_can_be_dropped(source: Channel, target: Channel) -> None:
    done = move(source, target, "torch==2.14.0", "helper", drop=True)
    entries = target.state(done.head, "simple/torch").entries
    assert [(e.file, e.version, e.variant, e.promoted) for e in entries] == [
        ("torch-2.14.0-py3-none-any.whl", "2.14.0", made.entry.variant, made.entry.sha256)
        for made in FILES[:2]
    ]
    (helper,) = target.state(done.head, "simple/helper").entries
    assert (helper.sha256, helper.promoted) == (FILES[3].entry.sha256, "")
    for entry in entries:
        key = f"packages/{entry.sha256[:2]}/{entry.sha256[2:]}/{entry.file}"
        members = _members(target, key)
        metadata = members["torch-2.14.0.dist-info/METADATA"]
        assert b"Version: 2.14.0\n" in metadata
        assert target.objects.read(f"{key}.metadata") == metadata
    check(target)
    again = move(source, target, "torch==2.14.0", "helper", drop=True)
    assert (again.head, again.new) == (done.head, ())


def test_who_asks_for_a_local_version_would_be_stranded(source: Channel, target: Channel) -> None:
    put(source, wheel("strict", "1.0", "cpu", requires=["torch==2.14.0+cpu"]))
    with pytest.raises(PublishError, match=r"requires `torch==2\.14\.0\+cpu`"):
        move(source, target, "strict", "torch==2.14.0", variant="cpu", drop=True)
    assert len(move(source, target, "strict", "torch==2.14.0", variant="cpu").new) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("drop", "after"), [(False, True), (True, False)])
def test_killed_anywhere_and_repeated(
    source: Channel, tmp_path: Path, *, drop: bool, after: bool
) -> None:
    operation = 0
    while True:
        operation += 1
        url = str(tmp_path / f"target-{operation}")
        mortal = Mortal(url, operation, after=after)
        try:
            move(source, Channel(mortal), "torch==2.14.0", "helper", drop=drop)
        except Death:
            channel = Channel.at(url, make=True)
            read_all(Reader(channel.objects.read), channel.head())
            move(source, channel, "torch==2.14.0", "helper", drop=drop)
            check(channel)
            continue
        break
    assert operation > 15


YARD = """
[project]
name = "torch"
version = "2.14.0"

[source]
git = "https://example.org/pytorch"
rev = "v2.14.0"

[matrix]
platform = ["linux-x86_64"]
compute = ["cpu", "cu130"]
blas = ["mkl"]
python = ["cp312"]
package = ["wheel"]

[channel.test]
url = "test"

[channel.release]
url = "release"
promote_from = "test"
"""


def test_the_plan_says_what_a_release_is(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("torchyard.toml").write_text(YARD)
    channel = Channel.at("test", make=True)

    def built(compute: str) -> Made:
        made = wheel("torch", "2.14.0", compute)
        cell = f"torch-2.14.0/linux-x86_64/{compute}-mkl/cp312/wheel"
        return made._replace(entry=replace(made.entry, cell=cell))

    put(channel, built("cpu"))
    half = torchyard("channel", "promote", "test", "release", "torch==2.14.0")
    assert half.code == PublishError.exit_code
    assert "`torch-2.14.0/linux-x86_64/cu130-mkl/cp312/wheel`" in half.err
    put(channel, built("cu130"))
    dry = torchyard("channel", "promote", "test", "./fresh", "torch==2.14.0", "--dry-run")
    assert ("2 files would be new" in dry.out, Path("fresh").exists()) == (True, False)
    whole = torchyard("channel", "promote", "test", "release", "torch==2.14.0")
    assert "2 files are new" in whole.out
    assert "0 files are new" in torchyard("channel", "promote", "./test/", "release", "torch").out


@pytest.mark.parametrize("release", ["release", "./release", "release/", "file://{}/%72elease/"])
def test_a_release_has_one_origin_however_it_is_called(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("torchyard.toml").write_text(YARD)
    put(Channel.at("elsewhere", make=True), wheel("torch", "2.14.0"))
    target = release.format(tmp_path)
    for words in (
        ("channel", "promote", "./elsewhere", target, "torch"),
        ("channel", "pin", "./elsewhere", "torch", "--to", target),
        ("publish", "./elsewhere", "--to", target),
    ):
        around = torchyard(*words)
        assert "takes packages from channel test only" in around.err
        assert around.code == PublishError.exit_code
    assert not Path("release").exists()
