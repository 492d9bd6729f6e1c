"""How long a build will take: from what its commands took before, or from their kind."""

from pathlib import Path

import pytest

from torchyard.model.unit_usage import UnitUsage
from torchyard.run.unit_meter import UnitMeter
from torchyard.run.work_left import WorkLeft

SEEN = "/work"


def outputs(kind: str, *numbers: int) -> list[str]:
    return [f"a.dir/{number}.{kind}.o" for number in numbers]


def build(folder: Path, every: list[str], logged: dict[str, float]) -> None:
    """Write what ninja has left of a build: its commands, and the seconds of those that ran."""
    (folder / "build").mkdir()
    edges = "".join(f"build {name}: CXX {name}.in\n" for name in every)
    (folder / "build/build.ninja").write_text(f"rule CXX\n  command = x\n{edges}", "utf-8")
    rows = (f"0\t{seconds * 1000:.0f}\t1\t{name}\tab\n" for name, seconds in logged.items())
    (folder / "build/.ninja_log").write_text("# ninja log v6\n" + "".join(rows), "utf-8")


class Meter(UnitMeter):
    """A fake: it looks at no process."""

    concurrency = 2.0


def left(folder: Path, commands: int, known: dict[str, float]) -> float | None:
    meter = Meter()
    meter.folders[f"{SEEN}/build"] = {}
    units = {name: UnitUsage(memory=1, cpu=cpu) for name, cpu in known.items()}
    return WorkLeft(folder, SEEN, meter, units).seconds(commands)


def test_a_build_that_goes_on_is_measured_by_what_it_did_before(tmp_path: Path) -> None:
    """After the first of 1,101 commands, which took a minute, it said 18 h 51 min."""
    done = dict.fromkeys(outputs("cpp", *range(300)), 10.0)
    build(tmp_path, outputs("cpp", *range(1400)), done | {"a.dir/300.cpp.o": 61.0})
    assert left(tmp_path, 1100, {}) == pytest.approx(1100 * 10.17 / 2, rel=0.01)


def test_each_command_takes_what_others_of_its_kind_took(tmp_path: Path) -> None:
    done = dict.fromkeys(outputs("cpp", *range(20)), 2.0) | dict.fromkeys(outputs("cu", 0), 100.0)
    build(tmp_path, [*done, *outputs("cpp", 20), *outputs("cu", 1, 2, 3)], done)
    assert left(tmp_path, 4, {}) == pytest.approx(302 / 2, abs=1)


def test_a_command_takes_what_it_took_in_an_earlier_build(tmp_path: Path) -> None:
    known = dict.fromkeys(outputs("cpp", *range(30)), 1.0) | dict.fromkeys(outputs("cpp", 3), 70.0)
    build(tmp_path, list(known), dict.fromkeys(outputs("cpp", 0, 1, 2), 1.5))
    slower = 1.5
    assert left(tmp_path, 27, known) == pytest.approx(96 * slower / 2, abs=1)


def test_nothing_is_promised_without_data(tmp_path: Path) -> None:
    build(tmp_path, outputs("cpp", *range(1000)), dict.fromkeys(outputs("cpp", 0), 61.0))
    assert left(tmp_path, 999, {}) is None


def test_files_that_lead_elsewhere_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "job/build").mkdir(parents=True)
    build(tmp_path, outputs("cpp", *range(20)), dict.fromkeys(outputs("cpp", *range(19)), 1.0))
    for name in (".ninja_log", "build.ninja"):
        (tmp_path / "job/build" / name).symlink_to(tmp_path / "build" / name)
    assert left(tmp_path, 1, {}) is not None
    assert left(tmp_path / "job", 1, {}) is None
