"""Which job is next."""

import random

from farm.tests.factories import KIND, made_plan
from torchyard_farm.scheduling.plan_tracker import JobStatus, PlanTracker
from torchyard_farm.scheduling.plans import FarmPlan

LINE: dict[int, list[int]] = {0: [], 1: [0], 2: [1]}
WIDE: dict[int, list[int]] = {number: [] for number in range(10)}


def sent(tracker: PlanTracker) -> list[tuple[FarmPlan, int]]:
    found = []
    while (one := tracker.next()) is not None:
        found.append(one)
    return found


def taken(tracker: PlanTracker) -> list[int]:
    """Return all jobs that can be submitted now."""
    return [job for _, job in sent(tracker)]


def test_a_job_waits_for_those_before_it() -> None:
    tracker = PlanTracker({KIND: 8})
    tracker.add(made_plan(LINE))
    assert taken(tracker) == [0]
    tracker.end("plan", 0, good=True)
    assert taken(tracker) == [1]


def test_the_most_urgent_comes_first_whichever_plan_it_is_of() -> None:
    tracker = PlanTracker({KIND: 3})
    tracker.add(made_plan({0: [], 1: []}, name="short"))
    tracker.add(made_plan(WIDE, name="wide"))
    assert [(plan.id, job) for plan, job in sent(tracker)] == [
        ("wide", 0),
        ("wide", 1),
        ("wide", 2),
    ]


def test_no_more_are_out_than_fit_the_window_of_their_kind() -> None:
    tracker = PlanTracker({KIND: 2, "any": 1})
    tracker.add(made_plan(WIDE, kinds={8: "any", 9: "any"}))
    assert sorted(taken(tracker)) == [0, 1, 8]
    tracker.end("plan", 0, good=False)
    assert taken(tracker) == [2]


def test_a_kind_without_machines_gets_nothing() -> None:
    tracker = PlanTracker({})
    tracker.add(made_plan(LINE))
    assert taken(tracker) == []


def test_nothing_behind_a_failure_is_sent_until_it_was_tried_again() -> None:
    tracker = PlanTracker({KIND: 8})
    tracker.add(made_plan(LINE))
    assert taken(tracker) == [0]
    tracker.end("plan", 0, good=False)
    assert taken(tracker) == []
    assert tracker.counts("plan") == (3, 0, 1, 0)
    assert tracker.failed("plan") == [0]
    tracker.end("plan", 0, good=True)  # of a rebuild
    assert taken(tracker) == [1]
    assert tracker.failed("plan") == []


def test_a_good_job_stays_good() -> None:
    tracker = PlanTracker({KIND: 8})
    tracker.add(
        made_plan(LINE), [JobStatus(0, over=True, good=True), JobStatus(0, over=True, good=False)]
    )
    assert tracker.counts("plan").good == 1
    tracker.end("plan", 0, good=False)
    assert tracker.counts("plan").good == 1


def test_a_dropped_plan_gives_its_places_back() -> None:
    tracker = PlanTracker({KIND: 2})
    tracker.add(made_plan(WIDE, name="first"))
    assert len(taken(tracker)) == 2
    tracker.drop("first")
    tracker.add(made_plan(LINE, name="second"))
    assert taken(tracker) == [0]
    tracker.end("first", 0, good=True)  # it ended after all
    assert "first" not in tracker


def test_what_is_out_is_known_again_after_a_restart() -> None:
    tracker = PlanTracker({KIND: 2})
    tracker.add(
        made_plan(WIDE), [JobStatus(0, over=True, good=True), JobStatus(1, over=False, good=False)]
    )
    assert taken(tracker) == [2]


def test_a_rebuild_that_runs_is_not_sent_twice() -> None:
    told = [JobStatus(0, over=True, good=False), JobStatus(0, over=False, good=False)]
    tracker = PlanTracker({KIND: 2})
    tracker.add(made_plan(LINE), told)
    assert tracker.counts("plan") == (3, 0, 0, 1)
    assert taken(tracker) == []


def test_killed_at_any_moment_each_job_is_sent_once_and_in_order() -> None:
    chance = random.Random(7)
    after = {n: sorted({chance.randrange(n) for _ in range(2)}) if n else [] for n in range(300)}
    plan = made_plan(after)
    table: list[JobStatus] = []  # what Buildbot's database would hold
    tracker = PlanTracker({KIND: 5})
    tracker.add(plan)
    begun: list[int] = []
    while not tracker.counts("plan").is_done:
        if chance.random() < 0.2:  # the master is killed
            tracker = PlanTracker({KIND: 5})
            tracker.add(plan, table)
        found = tracker.next()
        if found and chance.random() < 0.9:  # else it was killed before it had written
            job = found[1]
            ended = {told.job for told in table if told.good}
            assert ended.issuperset(after[job])
            table.append(JobStatus(job, over=False, good=False))
            begun.append(job)
        elif found:
            tracker = PlanTracker({KIND: 5})
            tracker.add(plan, table)
        out = [told for told in table if not told.over]
        assert len(out) <= 5
        if out and (not found or chance.random() < 0.3):
            ends = chance.choice(out)
            table[table.index(ends)] = JobStatus(ends.job, over=True, good=True)
            tracker.end("plan", ends.job, good=True)
    assert sorted(begun) == sorted(after)


def test_ten_thousand_jobs_take_no_time() -> None:
    plan = made_plan({n: [n - 1] if n % 10 else [] for n in range(10_000)})
    tracker = PlanTracker({KIND: 20})
    tracker.add(plan)
    count = 0
    while found := tracker.next():
        tracker.end("plan", found[1], good=True)
        count += 1
    assert count == 10_000
    assert tracker.counts("plan").is_done


def test_plans_that_are_over_leave_nothing_behind() -> None:
    tracker = PlanTracker({KIND: 4})
    for number in range(50):
        name = f"plan{number}"
        tracker.add(made_plan(WIDE, name=name))
        while found := tracker.next():
            tracker.end(name, found[1], good=True)
            if number % 2 and tracker.counts(name).good == 5:
                break  # it is cancelled
        tracker.drop(name)
    assert tracker.next() is None
    assert not tracker._plans
    assert not any(tracker._ready.values())
