"""Which job starts next, and where: urgency, resources and locality."""

from random import Random

import pytest

from farm.tests.factories import machine, real_plan
from torchyard.model.recipe import Stage
from torchyard_farm.scheduling.locality import InputLocality, typical_size
from torchyard_farm.scheduling.placement import (
    PendingJob,
    Placement,
    WorkerCapacity,
    choose_placement,
    reserve_workers,
)
from torchyard_farm.scheduling.plans import farm_plan
from torchyard_farm.scheduling.resources import Resources, resources_for
from torchyard_farm.scheduling.worker_status import (
    RunningJob,
    WorkerStatus,
    capacity,
    orphaned_jobs,
    shortfalls,
)

GB = 10**9
LONG = 10_000.0
"""Seconds after which every job is overdue."""


def pending_job(request: int, memory: int = 1, **fields: object) -> PendingJob:
    given: dict[str, object] = {"urgency": 1, "since": 0.0, "inputs": {}, **fields}
    return PendingJob(request, f"f{request}", needs=Resources(memory, 1), **given)  # type: ignore[arg-type] # as needed


def place(name: str, memory: int = 16, booked: int = 0, free_slots: int = 1) -> WorkerCapacity:
    return WorkerCapacity(name, Resources(memory, 100), Resources(booked, 0), free_slots)


def test_the_most_urgent_that_fits_begins() -> None:
    pending = [
        pending_job(1),
        pending_job(2, urgency=5),
        pending_job(3, 32, urgency=9),
        pending_job(4, urgency=5),
    ]
    assert choose_placement(pending, [place("a")], {}, InputLocality(), 0.0) == Placement(
        pending[1], "a"
    )
    assert choose_placement(pending, [place("a", free_slots=0)], {}, InputLocality(), 0.0) is None
    assert choose_placement(pending, [place("a", booked=16)], {}, InputLocality(), 0.0) is None


def test_jobs_go_where_their_inputs_are() -> None:
    locality = InputLocality()
    locality.record("a", ["core-1"])
    locality.record("b", ["core-2", "source"])
    one = pending_job(1, inputs={"core-1": 8000, "source": 2000})
    two = pending_job(2, inputs={"core-2": 8000, "source": 2000})
    places = [place("a"), place("b"), place("c")]
    assert choose_placement([one], places, {}, locality, 0.0) == Placement(one, "a"), (
        "a core outweighs"
    )
    assert choose_placement([two], places, {}, locality, 0.0) == Placement(two, "b")
    assert choose_placement([one, two], places[1:], {}, locality, 0.0) == Placement(two, "b"), (
        "not the older"
    )
    assert choose_placement([one], places[1:], {}, locality, 0.0) == Placement(one, "b"), (
        "the source"
    )
    assert choose_placement([one], places[2:], {}, locality, 0.0) == Placement(one, "c"), (
        "nobody idles"
    )
    urgent = pending_job(3, urgency=2)
    assert choose_placement([one, urgent], places[:1], {}, locality, 0.0) == Placement(urgent, "a")


def test_a_machine_with_all_inputs_takes_what_others_would_have_to_fetch() -> None:
    locality = InputLocality()
    locality.record("a", ["core-1", "core-2"])
    locality.record("b", ["core-1"])
    one, two = pending_job(1, inputs={"core-1": 8000}), pending_job(2, inputs={"core-2": 8000})
    assert choose_placement([one, two], [place("a")], {}, locality, 0.0) == Placement(two, "a")
    assert choose_placement([one, two], [place("b")], {}, locality, 0.0) == Placement(one, "b")


def test_a_machine_waits_a_moment_for_what_belongs_there() -> None:
    locality = InputLocality()
    locality.record("a", ["core-1", "source"])
    home = pending_job(1, inputs={"core-1": 8000, "source": 2000})
    foreign = pending_job(2, inputs={"core-2": 8000, "source": 2000})
    resting = place("a")._replace(is_cooling_down=True)
    assert choose_placement([foreign], [resting], {}, locality, 0.0) is None
    assert choose_placement([home], [resting], {}, locality, 0.0) == Placement(home, "a")
    assert choose_placement([pending_job(3)], [resting], {}, locality, 0.0) == Placement(
        pending_job(3), "a"
    )
    assert choose_placement([foreign], [place("a")], {}, locality, 0.0) == Placement(foreign, "a")


def test_who_waited_too_long_is_not_passed_over() -> None:
    locality = InputLocality()
    locality.record("a", ["core-2"])
    one = pending_job(1, inputs={"core-1": 8000})
    two = pending_job(2, inputs={"core-2": 8000}, since=LONG)
    assert choose_placement([one, two], [place("a")], {}, locality, 1.0) == Placement(two, "a")
    assert choose_placement([one, two], [place("a")], {}, locality, LONG) == Placement(one, "a")
    huge = one._replace(needs=Resources(99, 1))
    assert choose_placement([huge, two], [place("a")], {}, locality, LONG) == Placement(two, "a")


def test_a_machine_that_may_not_have_a_job_is_passed_over() -> None:
    begun, other = pending_job(1, excluded=frozenset("b")), pending_job(2)
    assert choose_placement([begun], [place("b")], {}, InputLocality(), 0.0) is None
    assert choose_placement(
        [begun], [place("b"), place("a")], {}, InputLocality(), 0.0
    ) == Placement(begun, "a")
    assert choose_placement([begun, other], [place("b")], {}, InputLocality(), 0.0) == Placement(
        other, "b"
    )


def test_a_job_that_runs_already_is_followed_where_it_runs() -> None:
    first, stray = pending_job(1, 12), pending_job(2, 12)
    full = place("a", booked=12)._replace(orphans=("f2",))
    assert choose_placement([first], [full], {}, InputLocality(), 0.0) is None
    assert choose_placement(
        [first, stray], [full, place("b")], {}, InputLocality(), 0.0
    ) == Placement(stray, "a")
    assert full.with_job(stray).reserved == full.reserved


def test_a_job_without_room_gets_the_machine_that_lacks_least() -> None:
    large, small = pending_job(1, 12), pending_job(2)
    places = {p.name: p for p in (place("a", booked=8), place("b", booked=5), place("c", 8))}
    held = reserve_workers([(large, "abc"), (small, "abc")], places, 0.0)
    assert held == {"b": large}
    assert choose_placement([large, small], [places["b"]], held, InputLocality(), 0.0) is None
    assert choose_placement([large, small], [places["a"]], held, InputLocality(), 0.0) == Placement(
        small, "a"
    )
    urgent = pending_job(3, urgency=2)
    assert choose_placement([urgent], [places["b"]], held, InputLocality(), 0.0) == Placement(
        urgent, "b"
    )
    assert choose_placement([urgent], [places["b"]], held, InputLocality(), LONG) is None
    assert reserve_workers([(large, "c")], places, 0.0) == {}, "it never fits"
    assert reserve_workers([(large, "ad")], places, 0.0) == {"a": large}, "d is not connected"


def test_several_large_jobs_get_a_machine_each() -> None:
    places = {name: place(name, booked=8) for name in "ab"}
    pending = [(pending_job(number, 12, urgency=number), "ab") for number in (1, 2, 3)]
    assert reserve_workers(pending, places, 0.0) == {"a": pending[2][0], "b": pending[1][0]}


@pytest.mark.parametrize("protected", [True, False])
def test_small_jobs_do_not_starve_a_large_one(protected: bool) -> None:
    """Two machines full of small jobs, and an endless supply as urgent as the large one."""
    large, began = pending_job(0, 12), None
    running = [(1 + number % 4, "ab"[number % 2], pending_job(-1, 4)) for number in range(8)]
    for now in range(100):
        running = [one for one in running if one[0] > now]
        waiting = [pending_job(now * 10 + number, 4) for number in range(1, 9)]
        waiting += [large] if began is None else []
        while True:
            places = {
                name: WorkerCapacity(name, Resources(16, 99), Resources(), 4) for name in "ab"
            }
            for _, name, job in running:
                places[name] = places[name].with_job(job)
            held = (
                reserve_workers(((one, "ab") for one in waiting), places, now) if protected else {}
            )
            found = choose_placement(waiting, places.values(), held, InputLocality(), now)
            if found is None:
                break
            waiting.remove(found.job)
            running.append((now + 3 + now % 2, found.machine, found.job))
            began = now if found.job == large else began
    assert began is None or began < 10
    assert (began is not None) is protected


def test_a_job_books_what_it_needs() -> None:
    assert resources_for(None, 3 * GB) == Resources(1, 3)


def test_a_machine_has_what_the_file_says_and_no_more_than_there_is() -> None:
    one = machine(memory=16, disk=100)
    assert capacity(one, None) == Resources(16, 100)
    assert capacity(one, WorkerStatus(memory=64 * GB, disk=900 * GB)) == Resources(16, 100)
    less = WorkerStatus(memory=8 * GB - 1, disk=50 * GB)
    assert capacity(one, less) == Resources(7, 50)
    assert shortfalls(one, less) == ("8 GB of memory, not 16 GB", "50 GB of disk, not 100 GB")
    busy = WorkerStatus(
        memory=64 * GB, disk=60 * GB, jobs={"f": RunningJob(name="core-f", takes=Resources(8, 40))}
    )
    assert capacity(one, busy) == Resources(16, 100), "what jobs use of what they booked is no lack"
    assert not shortfalls(one, busy)


def test_a_job_that_nobody_follows_holds_what_it_booked() -> None:
    jobs = {name: RunningJob(name=f"core-{name}", takes=Resources(8, 40)) for name in "fg"}
    look = WorkerStatus(memory=1, disk=1, jobs={**jobs, "h": RunningJob(name="core-h")})
    assert orphaned_jobs(look, ["g"]) == {"f": Resources(8, 40)}


def test_large_inputs_are_those_of_a_build() -> None:
    plan = farm_plan(real_plan(), (), name="p", store="s")

    def inputs(stage: Stage) -> set[Stage]:
        job = next(job for job in plan.jobs if plan.tasks[job.task].stage is stage)
        return {plan.tasks[number].stage for number in job.large}

    assert inputs(Stage.SOURCE) == set()
    assert inputs(Stage.BINDINGS) == {Stage.SOURCE, Stage.CORE}
    assert inputs(Stage.SMOKE) == {Stage.PACKAGE}
    sizes = {task.stage: typical_size(task) for task in plan.tasks}
    assert sizes[Stage.CORE] > sizes[Stage.SOURCE] > sizes[Stage.PACKAGE] > sizes[Stage.CHECK]


def test_machines_are_remembered_by_what_they_had_last() -> None:
    locality = InputLocality()
    for number in range(1500):
        locality.record("a", [str(number)])
    assert locality.local_size("a", {"0": 1, "1499": 1}) == 1
    assert locality.local_size("b", {"1499": 1}) == 0


def share_at_home(*, prefers: bool, machines: int = 4, cores: int = 12, pythons: int = 5) -> float:
    """Return the share of bindings that run where their core was built."""
    chance = Random(7)
    locality = InputLocality()
    made: dict[str, str] = {}
    waiting = [pending_job(number, urgency=2) for number in range(cores)]
    running: list[tuple[float, str, PendingJob]] = []
    now, at_home = 0.0, 0
    released: list[PendingJob] = []
    while waiting or running:
        busy = {name for _, name, _ in running}
        idle = [place(name) for name in map(str, range(machines)) if name not in busy]
        idle = [one._replace(is_cooling_down=bool(released)) for one in idle]
        found = choose_placement(waiting, idle, {}, locality if prefers else InputLocality(), now)
        if found is not None:
            one, name = found
            waiting.remove(one)
            locality.record(name, [*one.inputs, one.fingerprint])
            at_home += any(made[core] == name for core in one.inputs)
            running.append((now + one.urgency * chance.uniform(0.8, 1.2), name, one))
            continue
        if released:  # a moment later
            waiting, released = waiting + released, []
            continue
        assert not waiting or len(busy) == machines, "nobody idles while something waits"
        now, name, one = min(running)
        running.remove((now, name, one))
        if one.urgency == 2:
            made[one.fingerprint] = name
            numbers = range(1000 + one.request * pythons, 1000 + (one.request + 1) * pythons)
            released = [pending_job(number, inputs={one.fingerprint: 8000}) for number in numbers]
    return at_home / (cores * pythons)


def test_bindings_run_where_their_core_is() -> None:
    assert share_at_home(prefers=True) > 0.8
    assert share_at_home(prefers=False) < 0.4
