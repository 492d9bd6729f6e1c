"""Amounts with units, and the names nearest to what was typed."""

import pytest

from torchyard.model.quantity import (
    parse_duration,
    parse_size,
    show_count,
    show_duration,
    show_size,
)
from torchyard.model.suggest import nearest


@pytest.mark.parametrize(
    ("text", "size"), [("64 GB", 64 * 10**9), ("1.5TB", 15 * 10**11), (" 7 MB ", 7 * 10**6)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(("text", "seconds"), [("90 min", 5400), ("2 h", 7200), ("5 s", 5)])
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "GB", "64", "64 GiB", "-1 GB", "1e3 GB", "64 gb"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number with one of the units MB, GB, TB"):
        parse_size(text)


def test_amounts_are_shown_as_people_say_them() -> None:
    assert [show_size(n) for n in (5 * 10**5, 7 * 10**6, 64 * 10**9)] == ["500 kB", "7 MB", "64 GB"]
    assert [show_duration(n) for n in (5, 90, 7260)] == ["5 s", "2 min", "2 h 01 min"]
    assert [show_count(n, "job") for n in (0, 1, 1234)] == ["0 jobs", "1 job", "1,234 jobs"]


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("cp321", ["cp310", "cp311", "cp312"], "cp312"),
        ("2.14.0", ["2.10", "2.14"], "2.14"),
        ("PYTHON", ["platform", "python"], "python"),
        ("zzz", ["python"], None),
        ("x", [], None),
    ],
)
def test_nearest(word: str, known: list[str], expected: str | None) -> None:
    assert nearest(word, known) == expected
