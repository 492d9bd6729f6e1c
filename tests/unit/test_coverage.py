"""What a channel has of a plan."""

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from tests.support.helpers import SMALL, Command

from torchyard.errors import PublishError
from torchyard.index.entry import Entry, State
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason

CELLS = (
    "linux-x86_64/cpu-mkl/cp311/wheel",
    "linux-x86_64/cpu-mkl/cp312/wheel",
    "linux-x86_64/cpu-mkl/any/libtorch",
    "linux-x86_64/cu130-mkl/cp312/wheel",
    "linux-x86_64/cu130-mkl/any/libtorch",
    "macos-arm64/cpu-accelerate/cp311/wheel",
    "macos-arm64/cpu-accelerate/cp312/wheel",
    "macos-arm64/cpu-accelerate/any/libtorch",
)
"""All that the small file plans."""


def those(told: dict[str, dict[str, str]], presence: str) -> list[str]:
    return [cell for cell, found in told["cells"].items() if found == presence]


def entry(cell: str, version: str, yanked: str | None = None) -> Entry:
    return Entry(
        file=cell.replace("/", "-"),
        version=version,
        variant=cell.split("/")[1].partition("-")[0],
        sha256=sha256(cell.encode()).hexdigest(),
        size=1,
        uploaded="2026-11-15T14:20:00Z",
        cell=f"torch-{version.partition('+')[0]}/{cell}",
        yanked=yanked,
    )


def put(place: Path, part: str, entries: Iterable[Entry]) -> None:
    """Publish entries, whose files nobody will ask for."""

    def edit(state: State) -> State:
        return msgspec.structs.replace(state, entries=(*state.entries, *entries))

    reason = ChangeReason("test", "2026-11-15T14:20:00Z")
    Channel.at(str(place), make=True).commit({part: edit}, reason)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "torchyard.toml"
    path.write_text(SMALL.replace("file:///channels/nightly", "nightly"), encoding="utf-8")
    return path


def publish(tmp_path: Path, cells: Iterable[str], version: str = "2.14.0") -> None:
    wheels = [cell for cell in cells if cell.endswith("wheel")]
    local = {cell: cell.split("/")[1].partition("-")[0] for cell in wheels}
    put(
        tmp_path / "nightly",
        "simple/torch",
        [entry(cell, f"{version}+{local[cell]}") for cell in wheels],
    )
    others = [entry(cell, version) for cell in cells if cell not in wheels]
    put(tmp_path / "nightly", "libtorch/torch", others)


def test_whole_plan_is_there(torchyard: Command, tmp_path: Path, file: Path) -> None:
    publish(tmp_path, CELLS)
    told = json.loads(torchyard("channel", "coverage", "nightly", "-f", file, "--json").out)
    assert those(told, "there") == [f"torch-2.14.0/{cell}" for cell in CELLS]
    assert told["missing"] == those(told, "yanked") == those(told, "unplanned") == []
    done = torchyard("channel", "coverage", "nightly", "-f", file, "--fail-on-missing")
    assert done.code == 0
    assert "linux-x86_64 wheel: 3 of 3 packages there" in done.out
    assert "○" not in done.out


def test_what_is_missing_is_named_and_fails_only_on_demand(
    torchyard: Command, tmp_path: Path, file: Path
) -> None:
    publish(tmp_path, [cell for cell in CELLS if "cu130-mkl/cp312" not in cell])
    done = torchyard("channel", "coverage", "nightly", "-f", file)
    assert done.code == 0
    assert "7 there, 1 missing" in done.out
    assert [line.split() for line in done.out.splitlines() if line.startswith("cu130")] == [
        ["cu130-mkl", "·", "○"]
    ]
    failed = torchyard("channel", "coverage", "nightly", "-f", file, "--fail-on-missing")
    assert failed.code == PublishError.exit_code
    assert "the first is linux-x86_64/cu130-mkl/cp312/wheel" in failed.err


def test_yanked_and_unplanned_are_told_apart(
    torchyard: Command, tmp_path: Path, file: Path
) -> None:
    publish(tmp_path, CELLS[1:])
    more = [
        entry(CELLS[0], "2.14.0+cpu", yanked="broken"),
        entry("linux-x86_64/cpu-mkl/cp313/wheel", "2.14.0+cpu"),
        msgspec.structs.replace(entry(CELLS[1], "2.14.0+cpu"), file="others.whl", cell=""),
    ]
    put(tmp_path / "nightly", "simple/torch", more)
    told = json.loads(torchyard("channel", "coverage", "nightly", "-f", file, "--json").out)
    assert those(told, "yanked") == [f"torch-2.14.0/{CELLS[0]}"]
    assert those(told, "unplanned") == ["torch-2.14.0/linux-x86_64/cpu-mkl/cp313/wheel"]
    assert len(those(told, "there")) == len(CELLS) - 1
    shown = torchyard("channel", "coverage", "nightly", "-f", file).out
    assert ["cpu-mkl", "y", "●", "+"] in [line.split() for line in shown.splitlines()]


def test_a_new_file_for_a_yanked_one_is_there(
    torchyard: Command, tmp_path: Path, file: Path
) -> None:
    publish(tmp_path, CELLS)
    again = msgspec.structs.replace(entry(CELLS[0], "2.14.0+cpu", yanked=""), file="older.whl")
    put(tmp_path / "nightly", "simple/torch", [again])
    assert (
        those(
            json.loads(torchyard("channel", "coverage", "nightly", "-f", file, "--json").out),
            "yanked",
        )
        == []
    )


def test_versions_and_subsets(torchyard: Command, tmp_path: Path, file: Path) -> None:
    publish(tmp_path, CELLS, "2.13.0")
    now = torchyard("channel", "coverage", "nightly", "-f", file)
    assert "8 missing" in now.out
    assert "the channel has 2.13.0" in now.out
    then = ("channel", "coverage", "nightly", "-f", file, "--version", "2.13.0", "--json")
    assert json.loads(torchyard(*then).out)["missing"] == []
    part = json.loads(torchyard(*then, "--subset", "pr").out)
    assert those(part, "there") == [f"torch-2.13.0/{cell}" for cell in CELLS if "cp312" in cell]
    assert len(those(part, "unplanned")) == len(CELLS) - len(those(part, "there"))


def test_channel_is_compared_with_its_own_subset(
    torchyard: Command, tmp_path: Path, file: Path
) -> None:
    text = file.read_text(encoding="utf-8")
    text += 'subset = "pr"\n\n[channel.release]\nurl = "nightly"\npromote_from = "nightly"\n'
    file.write_text(text, encoding="utf-8")
    publish(tmp_path, [cell for cell in CELLS if "cp312" in cell])
    for name in ("nightly", "release"):
        told = json.loads(torchyard("channel", "coverage", name, "-f", file, "--json").out)
        assert told["subset"] == "pr"
        assert told["missing"] == []


def test_conda_packages_are_found_in_their_subdir(
    torchyard: Command, tmp_path: Path, file: Path
) -> None:
    conda = "linux-x86_64/cpu-mkl/cp312/conda"
    file.write_text(file.read_text().replace('"libtorch"]', '"libtorch", "conda"]'))
    other = msgspec.structs.replace(entry(conda, "2.14.0"), cell=f"vision-2.14.0/{conda}")
    record = msgspec.json.encode({"name": "torch", "sha256": "00" * 32, "md5": "00" * 16})
    entries = (entry(conda, "2.14.0"), other)
    told = [msgspec.structs.replace(one, record=msgspec.Raw(record)) for one in entries]
    put(tmp_path / "nightly", "conda/linux-64", told)
    shown = json.loads(torchyard("channel", "coverage", "nightly", "-f", file, "--json").out)
    assert those(shown, "there") == [f"torch-2.14.0/{conda}"]


@pytest.mark.parametrize("columns", [60, 80])
def test_report_fits(
    torchyard: Command,
    tmp_path: Path,
    file: Path,
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pythons = ("cp310", "cp311", "cp312", "cp313", "cp313t", "cp314", "cp314t", "cp315", "cp315t")
    listed = ", ".join(f'"{python}"' for python in pythons)
    text = file.read_text().replace('"cp311", "cp312"', listed)
    file.write_text(text.replace('"cu130"', '"rocm7.2"').replace('"mkl"', '"openblas"'))
    publish(tmp_path, ["linux-x86_64/cpu-openblas/cp313t/wheel"])
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = torchyard("channel", "coverage", "nightly", "-f", file).out.splitlines()
    assert max(map(len, lines)) <= columns
    (row,) = (line for line in lines if line.startswith("cpu-openblas"))
    assert row.split()[1:].index("●") == pythons.index("cp313t")
