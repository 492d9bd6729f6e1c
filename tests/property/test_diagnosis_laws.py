"""Laws of diagnoses: noise before, after and between lines changes nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchyard.config.failures import load_failures
from torchyard.model.failure import Diagnosis, LineSeverity
from torchyard.run.diagnose import diagnose_log, diagnose_pieces

pytestmark = pytest.mark.hypothesis

FAILURES = load_failures()
FATAL = [
    name
    for name, failure in FAILURES.items()
    if failure.severity == LineSeverity.FATAL and "\n" not in failure.example
]
NOISE = (
    "-- Performing Test HAVE_ERROR - Failed",
    "-- Found Python: /usr/bin/python3 (found version '3.12')",
    "copying torch/errors.py -> build/lib/torch",
    "x.cpp:3:4: warning: this will be an error: in C++26 [-Wdeprecated]",
    "x.cpp:3:4: note: candidate: 'void error: f()'",
    "  12 |   throw error;",
    "/usr/bin/c++ -DUSE_ERROR -Werror=return-type -Wno-error -c error.cpp -o error.cpp.o",
    "12 passed, 0 failed, 0 errors in 3.4s",
    "tests/test_error.py::test_error PASSED",
    "Collecting numpy, Downloading, Installing collected packages",
    "",
)
noise = st.lists(st.sampled_from(NOISE), max_size=30)
stamps = st.sampled_from(("", "2026-07-30T10:39:20.7140484Z ", "#12 3.45 ", "[12:01:02] "))


def told(diagnosis: Diagnosis) -> tuple[str | None, str | None, str | None]:
    line = diagnosis.line.text if diagnosis.line else None
    return diagnosis.name, diagnosis.certainty, line


@given(st.sampled_from(FATAL), noise, noise, stamps)
def test_noise_around_an_error(name: str, before: list[str], after: list[str], stamp: str) -> None:
    example = FAILURES[name].example
    alone = diagnose_log([example], FAILURES)
    log = [f"{stamp}{line}" for line in (*before, example, *after)]
    amid = diagnose_log(log, FAILURES)
    assert told(amid) == told(alone)
    assert amid.line
    assert amid.line.number == len(before) + 1


@given(
    st.sampled_from(FATAL),
    st.lists(st.tuples(st.integers(1, 8), st.sampled_from(NOISE)), max_size=20),
)
def test_ninja_between_an_error(name: str, steps: list[tuple[int, str]]) -> None:
    """Progress of other commands before and after the one that failed."""
    example = FAILURES[name].example
    failed = ["FAILED: a.o", "c++ -c a.cpp", example]
    alone = diagnose_log(failed, FAILURES)
    progress = [f"[{number + 1}/10] {text}" for number, text in steps]
    amid = diagnose_log([*progress, *failed, *progress, "ninja: build stopped"], FAILURES)
    assert told(amid) == told(alone)


@given(st.sampled_from(FATAL), noise, st.integers(1, 300))
def test_pieces(name: str, lines: list[str], size: int) -> None:
    data = "\n".join([*lines, FAILURES[name].example, *lines]).encode()
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    assert diagnose_pieces(pieces, FAILURES) == diagnose_pieces([data], FAILURES)


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_any_bytes(pieces: list[bytes]) -> None:
    found = diagnose_pieces(pieces, FAILURES)
    assert found.causes
    assert all(0 < line.number <= found.total for cause in found.causes for line in cause.lines)


@given(noise)
def test_noise_alone(lines: list[str]) -> None:
    found = diagnose_log(lines, FAILURES)
    assert (found.name, found.found) == (None, "tail")
