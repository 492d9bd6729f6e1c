"""Repairing a channel whose head or states are damaged."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.channel_deeds import FIRST, LATER, spec
from tests.support.channel_reader import assert_right, told
from tests.support.channels import put, wheel
from tests.support.helpers import Command
from tests.support.schemas import validate

from torchyard.errors import StoreError
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.head import HEAD, HEAD_COPIES, state_key
from torchyard.publish.ops.pin import add_channel_pin
from torchyard.publish.ops.repair_channel import ChannelRepair, repair_channel
from torchyard.publish.select import parse_selection

DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "text": lambda path: path.write_bytes(b"<html>not found</html>"),
    "gone": lambda path: path.unlink(),
}
TORCH = "simple/torch"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A channel of two generations, and a third without pages of its own."""
    folder = tmp_path_factory.mktemp("model")
    channel = Channel.at(str(folder), make=True)
    put(channel, *FIRST, at=spec(1).at)
    put(channel, *LATER, at=spec(2).at)
    add_channel_pin(channel, parse_selection(["torch==1.0"]), "kept", "why not", spec(3))
    return folder


@pytest.fixture
def channel(model: Path, tmp_path: Path) -> Channel:
    return Channel.at(str(shutil.copytree(model, tmp_path / "channel")))


def repaired(channel: Channel, *, dry_run: bool = False) -> ChannelRepair:
    return repair_channel(Channel(channel.objects), spec(9), dry_run=dry_run)


def path_of(channel: Channel, key: str) -> Path:
    return Path(channel.url, key)


def state_path(channel: Channel, part: str) -> Path:
    return path_of(channel, state_key(channel.head().parts[part].state))


def test_a_whole_channel_is_left_alone(channel: Channel) -> None:
    before = channel.head()
    done = repaired(channel)
    assert done.damage.is_none
    assert done.pages == []
    assert channel.head() == before


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_head_comes_back_from_its_copy(channel: Channel, kind: str) -> None:
    before, shown = channel.head(), told(channel)
    DAMAGE[kind](path_of(channel, HEAD))
    if kind != "gone":
        with pytest.raises(StoreError, match="can't be read") as error:
            channel.head()
        assert "torchyard channel restore" in str(error.value.diagnostics[0].hint)
    assert repaired(channel, dry_run=True).damage.source == "copy"
    assert repaired(channel).damage.source == "copy"
    after = channel.head()
    assert after.generation == before.generation + 1
    assert (after.pins, after.name, after.log[:-1]) == (before.pins, before.name, before.log)
    assert told(channel) == shown
    assert_right(channel)
    put(channel, wheel("more"), at=spec(10).at)
    assert_right(channel)


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_head_whose_last_copy_is_damaged_is_rolled_forward(channel: Channel, kind: str) -> None:
    """What has pages was published, whatever the older copy says."""
    put(channel, wheel("torch", "1.2", "cpu", ["helper"]), wheel("new"), at=spec(4).at)
    shown, generation = told(channel), channel.head().generation
    DAMAGE[kind](path_of(channel, HEAD_COPIES[generation % 2]))
    DAMAGE[kind](path_of(channel, HEAD))
    done = repaired(channel)
    assert done.damage.source == "copy"
    assert set(done.damage.restored) == {TORCH, "simple/new"}
    assert channel.head().generation == generation + 1
    assert told(channel) == shown
    assert_right(channel)
    assert channel.head().pins


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_head_without_copies_is_made_of_states(channel: Channel, kind: str) -> None:
    shown, before = told(channel), channel.head()
    for key in (HEAD, *HEAD_COPIES):
        DAMAGE[kind](path_of(channel, key))
    done = repaired(channel)
    assert done.damage.source == "states"
    assert told(channel) == shown
    assert channel.head().parts.keys() == before.parts.keys()
    assert_right(channel)


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("part", [TORCH, "conda/linux-64", "libtorch/torch"])
def test_a_part_without_its_state_shows_the_one_before(
    channel: Channel, part: str, kind: str
) -> None:
    shown = told(channel)
    DAMAGE[kind](state_path(channel, part))
    with pytest.raises(StoreError) as error:
        Channel(channel.objects).state(channel.head(), part)
    assert "torchyard channel restore" in str(error.value.diagnostics[0].hint)
    done = repaired(channel)
    assert (done.damage.source, set(done.damage.restored)) == ("whole", {part})
    assert done.damage.unreachable == (2,)
    files = {entry.file for entry in channel.state(channel.head(), part).entries}
    assert files == {made.entry.file for made in FIRST if made.part == part}
    assert_right(channel)
    put(channel, *LATER, at=spec(10).at)
    assert told(channel) == shown
    assert_right(channel)


def test_an_earlier_state_shows_no_package_that_is_gone(channel: Channel) -> None:
    gone = next(made for made in FIRST if made.part == TORCH)
    path_of(channel, gone.key).unlink()
    state_path(channel, TORCH).unlink()
    repaired(channel)
    files = {entry.file for entry in channel.state(channel.head(), TORCH).entries}
    assert files == {m.entry.file for m in FIRST if m.part == TORCH and m is not gone}
    assert_right(channel)


def test_a_part_without_any_state_is_lost_and_can_be_published_again(channel: Channel) -> None:
    shown = told(channel)
    states = {change.parts[TORCH][1] for change in channel.head().log if TORCH in change.parts}
    for digest in states:
        path_of(channel, state_key(digest)).unlink()
    assert repaired(channel).damage.lost == (TORCH,)
    assert TORCH not in channel.head().parts
    assert_right(channel)
    put(channel, *FIRST, *LATER, at=spec(10).at)
    assert told(channel) == shown
    assert_right(channel)


@pytest.mark.parametrize("damaged", [(HEAD,), (HEAD, *HEAD_COPIES), (TORCH,)])
def test_a_state_that_a_dead_writer_left_is_not_shown(
    channel: Channel, tmp_path: Path, damaged: tuple[str, ...]
) -> None:
    """It is the newest of its part, and was never published."""
    other = shutil.copytree(channel.url, tmp_path / "other")
    put(Channel.at(str(other)), wheel("torch", "9.0", "cpu"), at=spec(5).at)
    shown = {key: files for key, files in told(channel).items() if damaged != (TORCH,)}
    for key in damaged:
        path = state_path(channel, TORCH) if key == TORCH else path_of(channel, key)
        path.write_bytes(b"")
    for path in other.glob("states/*/*"):
        here = path_of(channel, str(path.relative_to(other)))
        here.parent.mkdir(exist_ok=True)
        if not here.exists():
            shutil.copy(path, here)
    repaired(channel)
    assert_right(channel)
    assert shown.items() <= told(channel).items()
    files = {entry.file for entry in channel.state(channel.head(), TORCH).entries}
    assert "torch-9.0+cpu-py3-none-any.whl" not in files


def test_nothing_is_made_of_nothing(tmp_path: Path) -> None:
    (tmp_path / HEAD).write_bytes(b"")
    with pytest.raises(StoreError, match="nothing to restore it from"):
        repair_channel(Channel.at(str(tmp_path)), spec(1), dry_run=False)


def test_the_command_says_what_it_did(channel: Channel, torchyard: Command) -> None:
    path_of(channel, HEAD).write_bytes(b"")
    refused = torchyard("channel", "log", channel.url)
    assert refused.code != 0
    assert f"torchyard channel restore {channel.url}" in refused.err
    planned = torchyard("channel", "restore", channel.url, "--dry-run")
    assert "restored from its copy" in planned.out
    assert "nothing was changed" in planned.out
    done = torchyard("channel", "restore", channel.url, "--json")
    assert done.code == 0
    document = json.loads(done.out)
    validate(document, "channel-restore")
    assert (document["head"], document["generation"], document["parts"]) == ("copy", 4, [])
    again = torchyard("channel", "restore", channel.url)
    assert "the head is undamaged" in again.out
    assert torchyard("channel", "check", channel.url).code == 0
