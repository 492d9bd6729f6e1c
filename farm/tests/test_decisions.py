"""What the end of a process means, and who is asked first."""

import pytest

from torchyard_farm.affinity import Try, may_take
from torchyard_farm.attempts import Verdict, is_given_up, judge


@pytest.mark.parametrize(
    ("code", "interrupted", "stopping", "verdict"),
    [
        (0, False, False, Verdict.GOOD),
        (9, False, False, Verdict.BAD),
        (75, False, False, Verdict.AGAIN),
        (-9, False, False, Verdict.AGAIN),
        (None, False, False, Verdict.AGAIN),
        (-15, True, False, Verdict.ENDED),
        (-15, True, True, Verdict.LATER),
        (0, False, True, Verdict.GOOD),
    ],
)
def test_verdicts(code: int | None, interrupted: bool, stopping: bool, verdict: Verdict) -> None:
    assert judge(code, interrupted=interrupted, stopping=stopping) is verdict


def test_attempts_are_bounded() -> None:
    assert [is_given_up(failures, 3) for failures in range(5)] == [False, False, False, True, True]


def test_a_job_that_was_begun_is_offered_to_who_began_it() -> None:
    assert may_take(1, None, 0, 60)
    for verdict in (None, Verdict.LATER):  # the master was killed, or stopped
        assert may_take(1, Try(1, verdict), 0, 60)
        assert not may_take(2, Try(1, verdict), 0, 60)
        assert may_take(2, Try(1, verdict), 61, 60)
    assert may_take(2, Try(1, Verdict.AGAIN), 0, 60)
