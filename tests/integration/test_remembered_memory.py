"""A build whose units are known from the one before: none is killed, and little time is lost."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.test_memory_guard import LENGTH, UNIT, YARD, Run, build

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed"),
]

LIGHT, MIDDLE, HEAVY = 30, 90, 180
"""Chains of templates in a unit: 0.3, 0.8 and 1.5 GB."""
UNITS = [*[LIGHT, MIDDLE] * 5, *[HEAVY] * 3, *[LIGHT] * 5]
SLOTS = 8


def write(folder: Path) -> None:
    folder.mkdir(parents=True)
    lines = ["rule cc", "  command = g++ -c $in -o $out"]
    lines += [f"build {n}.o: cc {n}.cpp" for n in range(len(UNITS))]
    (folder / "build.ninja").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for unit, chains in enumerate(UNITS):
        text = "\n".join(
            f"static_assert(Link<{LENGTH}, {n}>::value == {LENGTH + n});" for n in range(chains)
        )
        (folder / f"{unit}.cpp").write_text(f"{UNIT}{text}\n", encoding="utf-8")


def fixed(folder: Path) -> Iterator[Run]:
    for jobs in (1, 2, 3, 4):
        write(folder / f"j{jobs}")
        yield build(folder / f"j{jobs}", "ninja", f"-j{jobs}")


def test_a_build_that_is_known_is_as_fast_as_the_best_fixed_number(tmp_path: Path) -> None:
    (tmp_path / "known").mkdir()
    write(tmp_path / "known/code")
    (tmp_path / "known/torchyard.toml").write_text(YARD, encoding="utf-8")
    torchyard = [sys.executable, "-m", "torchyard", "build", "core:*", "--slots", str(SLOTS)]
    first = build(tmp_path / "known", *torchyard)
    (tmp_path / "known/code/changed").touch()
    known = build(tmp_path / "known", *torchyard)
    print(first.said, known.said)
    runs = list(fixed(tmp_path))
    best = min(run.seconds for run in runs if run.code == 0)
    print(f"best fixed: {best:.1f} s; the same with known units: {known.seconds / best:.2f} times")
    assert (first.code, known.code) == (0, 0)
    assert "killed" not in known.said
    assert known.seconds <= 1.1 * best
