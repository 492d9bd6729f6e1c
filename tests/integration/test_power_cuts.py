"""After a power cut at any moment, all that is named is whole, and the same command goes on."""

import shutil
import sys
from pathlib import Path

import pytest
from tests.support.helpers import ROOT
from tests.support.power_cuts import Loss, Node, Recording, read_recording, record
from tests.support.power_deeds import DEEDS

from torchyard.errors import TorchyardError
from torchyard.store import gc_lease

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed"),
]

SEED = 16
POINTS = {
    "job": 100,
    "collection": 40,
    "copy": 60,
    "first publish": 100,
    "publish": 100,
    "prune": 100,
    "promote": 100,
    "build": 100,
}
"""How many different disks there are at least."""

IN_CI = dict.fromkeys(POINTS, 2) | {"build": 1}
"""How many are tried in CI, and one more: that of a cut after the end."""

EVERY = {"build": 20}
"""The nightly set takes every n-th cut of these deeds, and all cuts of the others."""


def test_there_are_enough_cuts() -> None:
    assert DEEDS.keys() == POINTS.keys()
    assert sum(POINTS.values()) >= 300
    assert sum(count + 1 for count in IN_CI.values()) >= 20


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(gc_lease, "DEAD", 0.1)  # minutes that writers wait for a collection
    monkeypatch.setattr(gc_lease, "BEAT", 0.02)
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def recorded(name: str, root: Path) -> Recording:
    DEEDS[name].before(root)
    command = [sys.executable, "-m", "tests.support.power_deeds", name, str(root)]
    return record(command, root, root.with_suffix(".log"), ROOT)


def go_on(name: str, recording: Recording, number: int, loss: Loss) -> bool:
    """Cut, and do it again; return whether it had been done."""
    deed = DEEDS[name]
    try:
        recording.cut(number, loss, SEED)
        deed.is_sound(recording.root)
        is_last = number == len(recording)
        was_done = is_last and deed.is_done(recording.root)
        deed.do(recording.root)
        assert deed.is_done(recording.root)
    except BaseException as error:
        error.add_note(f"{name}: cut after {number} of {len(recording)} operations, {loss}")
        raise
    return was_done


def test_calls_that_strace_wrote_in_another_order(root: Path) -> None:
    """Another thread used the directory before strace wrote that it was made."""

    def path(name: str) -> str:
        return "".join(f"\\x{byte:02x}" for byte in str(root / name).encode())

    lines = [
        f'2 openat(AT_FDCWD<{path("")}>, "{path("new/file")}", O_CREAT) = 3<{path("new/file")}>',
        f'1 mkdir("{path("new")}", 0777) = 0',
        f"2 fsync(3<{path('new')}>) = 0",
        f"2 fsync(3<{path('')}>) = 0",
    ]
    log = root.with_suffix(".log")
    log.write_text("\n".join(lines) + "\n", "ascii")
    recording = read_recording(log, root, Node(is_folder=True))
    recording.cut(len(recording), Loss.ALL, SEED)
    assert (root / "new/file").is_file()


@pytest.mark.parametrize("name", DEEDS)
def test_after_a_power_cut_the_same_command_goes_on(name: str, root: Path) -> None:
    recording = recorded(name, root)
    assert go_on(name, recording, len(recording), Loss.ALL), "what has ended well is on the disk"
    for number, loss in recording.some_cuts(IN_CI[name]):
        go_on(name, recording, number, loss)


@pytest.mark.parametrize("name", ["job", "first publish"])
def test_without_a_sync_a_power_cut_does_harm(name: str, root: Path) -> None:
    """So the cuts above would be noticed."""
    recording = recorded(name, root).without_syncs()
    recording.cut(len(recording), Loss.BYTES, SEED)
    with pytest.raises((AssertionError, TorchyardError, ValueError)):
        DEEDS[name].is_sound(root)
    recording.cut(len(recording), Loss.ALL, SEED)
    assert not DEEDS[name].is_done(root)


@pytest.mark.slow
@pytest.mark.parametrize("name", DEEDS)
def test_after_every_power_cut_the_same_command_goes_on(name: str, root: Path) -> None:
    recording = recorded(name, root)
    cuts = list(recording.all_cuts(SEED))[:: EVERY.get(name, 1)]
    assert len(cuts) >= POINTS[name]
    for number, loss in cuts:
        go_on(name, recording, number, loss)
    print(f"{name}: {len(cuts)} cuts at {len(recording)} operations")
