"""What an exit means, how often a job is attempted, and on which machine."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchyard_farm.scheduling.attempts import (
    AttemptRecord,
    AttemptVerdict,
    RetryLimits,
    attempt_number,
    explain_verdict,
    final_verdict,
    judge_exit,
)
from torchyard_farm.scheduling.retry_delay import JobOffer, retry_delay

LIMITS = RetryLimits()
G, B, A, L, E = (
    AttemptVerdict.GOOD,
    AttemptVerdict.BAD,
    AttemptVerdict.AGAIN,
    AttemptVerdict.LATER,
    AttemptVerdict.ENDED,
)
LOST, CUT = AttemptVerdict.LOST, AttemptVerdict.CUT
RETRIED = (None, A, L, LOST, CUT)


@pytest.mark.parametrize(
    ("code", "lost", "unwanted", "stopping", "verdict"),
    [
        (0, False, False, False, G),
        (9, False, False, False, B),
        (75, False, False, False, A),
        (143, False, False, False, A),  # its machine shuts down
        (-9, False, False, False, A),
        (None, False, False, False, A),
        (None, True, False, False, LOST),
        (-15, False, True, False, E),
        (None, True, True, False, E),  # its worker was lost while it was cancelled
        (-15, False, False, True, L),
        (143, False, False, True, L),
        (None, True, False, True, L),
        (None, True, True, True, E),
        (0, False, False, True, G),
        (9, False, False, True, B),
    ],
)
def test_verdicts(
    code: int | None, lost: bool, unwanted: bool, stopping: bool, verdict: AttemptVerdict
) -> None:
    assert judge_exit(code, lost=lost, unwanted=unwanted, stopping=stopping) is verdict


@pytest.mark.parametrize(("code", "reason", "verdict"), [(10, "missing", A), (10, "", B)])
def test_what_is_gone_from_the_store_is_not_the_fault_of_a_job_that_needs_it(
    code: int, reason: str, verdict: AttemptVerdict
) -> None:
    given = judge_exit(code, reason=reason, lost=False, unwanted=False, stopping=False)
    assert given is verdict
    assert judge_exit(9, reason="missing", lost=False, unwanted=False, stopping=False) is B


def attempts(*verdicts: AttemptVerdict | None) -> list[AttemptRecord]:
    return [
        AttemptRecord(f"w{number % 3}", verdict, 100.0) for number, verdict in enumerate(verdicts)
    ]


@pytest.mark.parametrize(
    ("verdicts", "conclusion"),
    [
        ((), None),
        ((A, A), None),
        ((A, A, A), AttemptVerdict.GIVEN_UP),
        ((A, LOST, A, LOST), None),
        ((LOST, LOST, LOST), AttemptVerdict.QUARANTINED),
        ((LOST, CUT, LOST, CUT), None),
        ((CUT,) * 29, None),
        ((CUT,) * 30, AttemptVerdict.GIVEN_UP),
        ((None,) * 99 + (L,) * 99, None),
        ((LOST, E), E),
        ((E, LOST, LOST, LOST), E),
    ],
)
def test_when_a_job_is_not_tried_any_more(
    verdicts: tuple[AttemptVerdict | None, ...], conclusion: AttemptVerdict | None
) -> None:
    assert final_verdict(attempts(*verdicts), LIMITS) is conclusion


def test_only_tries_that_came_to_an_end_are_attempts() -> None:
    assert attempt_number([]) == 1
    assert attempt_number(attempts(None, L, LOST, CUT)) == 1
    assert attempt_number(attempts(A, None, A)) == 3


def test_what_people_are_told() -> None:
    assert "(w0, w1, w2)" in explain_verdict(AttemptVerdict.QUARANTINED, attempts(LOST, LOST, LOST))
    assert "after 3 attempts" in explain_verdict(AttemptVerdict.GIVEN_UP, attempts(A, A, A))


histories = st.lists(
    st.builds(AttemptRecord, st.sampled_from("xyz"), st.sampled_from(RETRIED), st.just(0.0)),
    max_size=60,
)


@given(histories)
def test_nothing_goes_on_for_ever_but_a_master_that_dies(history: list[AttemptRecord]) -> None:
    counts = Counter(one.verdict for one in history)
    if final_verdict(history, LIMITS) is None:
        assert counts[A] < LIMITS.attempts
        assert counts[LOST] < LIMITS.deaths
        assert counts[LOST] + counts[CUT] < LIMITS.losses


@given(histories, st.sampled_from("xyz"), st.sets(st.sampled_from("xyz")))
def test_everybody_may_take_any_job_in_the_end(
    history: list[AttemptRecord], machine: str, others: set[str]
) -> None:
    def wait(since: float) -> float:
        return retry_delay(machine, history, JobOffer(others, since, since), LIMITS)

    assert wait(0.0) >= wait(1.0) >= 0.0
    assert wait(wait(0.0)) == 0.0
    assert wait(0.0) <= LIMITS.longest


@given(histories.filter(bool))
def test_there_is_always_one_who_waits_no_longer_than_the_pause(
    history: list[AttemptRecord],
) -> None:
    waits = [retry_delay(machine, history, JobOffer("xyz", 0.0, 0.0), LIMITS) for machine in "xyz"]
    counted = sum(one.verdict in (A, LOST, CUT) for one in history)
    assert min(waits) <= max(LIMITS.pause_after(counted), LIMITS.back)


@pytest.mark.parametrize(
    ("history", "machine", "wait"),
    [
        ([], "w0", 0),
        (attempts(None), "w0", 0),  # the master was killed: the job is still there
        (attempts(None), "w1", 55),
        (attempts(L), "w1", 55),
        (attempts(LOST), "w0", 0),
        (attempts(LOST), "w1", 10),
        (attempts(CUT, CUT), "w1", 10),  # also for its own machine
        (attempts(CUT, CUT), "w0", 25),
        (attempts(A), "w0", 295),
        (attempts(A), "w1", 10),
        (attempts(A, A), "w2", 25),
        (attempts(A, A), "w1", 295),
        (attempts(LOST, LOST, LOST), "w0", 115),
        (attempts(LOST, E), "w0", 0),
    ],
)
def test_who_is_asked_first(history: list[AttemptRecord], machine: str, wait: float) -> None:
    others = {"w0", "w1", "w2"}
    assert retry_delay(machine, history, JobOffer(others, 105.0, 20.0), LIMITS) == wait


def test_a_machine_takes_what_failed_on_it_if_there_is_no_other() -> None:
    assert retry_delay("w0", attempts(A), JobOffer({"w0"}, 105.0, 99.0), LIMITS) == 10


def test_a_network_that_flaps_for_hours_fails_no_job() -> None:
    assert sum(LIMITS.pause_after(number) for number in range(LIMITS.losses)) > 3 * 3600
