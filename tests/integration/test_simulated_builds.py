"""Simulated numbers of compile slots, held against real runs of ninja."""

import subprocess
from pathlib import Path
from random import Random

import pytest

from torchyard.insight.build_record import read_build

pytestmark = [pytest.mark.integration, pytest.mark.slow]

UNITS = 30


def write_build(folder: Path) -> None:
    """Write a build of units that sleep, three libraries that need them, and a program."""
    random = Random(7)  # noqa: S311 - the same each time
    lines = ["rule run", "  command = sleep $seconds && touch $out"]
    libraries: list[list[str]] = [[], [], []]
    for number in range(UNITS):
        output = f"CMakeFiles/core.dir/{number}.cpp.o"
        needed = f" lib{number % 3 - 1}.so" if number % 3 else ""
        lines += [f"build {output}: run ||{needed}", f"  seconds = {random.uniform(0.1, 0.9):.2f}"]
        libraries[number % 3].append(output)
    for number, objects in enumerate(libraries):
        lines += [f"build lib{number}.so: run {' '.join(objects)}", "  seconds = 0.5"]
    folder.mkdir()
    (folder / "CMakeFiles/core.dir").mkdir(parents=True)
    (folder / "build.ninja").write_text("\n".join([*lines, ""]))


def test_one_and_two_slots_take_as_long_as_simulated(tmp_path: Path) -> None:
    """Each run predicts the other; the duration is the subject."""
    real = {}
    records = {}
    for slots in (1, 2):
        folder = tmp_path / str(slots)
        write_build(folder)
        subprocess.run(["ninja", "-C", folder, "-j", str(slots)], check=True, capture_output=True)
        records[slots] = read_build(folder)
        real[slots] = records[slots].seconds
    assert records[1].with_slots(2) == pytest.approx(real[2], rel=0.1)
    assert records[2].with_slots(1) == pytest.approx(real[1], rel=0.1)
    assert records[1].with_slots(1) == pytest.approx(real[1], rel=0.1)
