"""Which job begins next, and where: urgency, room, and what is there already."""

from random import Random

import pytest

from farm.tests.made import machine, real_plan
from torchyard.model.recipe import Stage
from torchyard_farm.jobs.booking import (
    Amounts,
    Look,
    Running,
    booked_for,
    capacity,
    complaints,
    strays,
)
from torchyard_farm.jobs.choice import Found, Place, Wish, choose, reserve
from torchyard_farm.jobs.plans import farm_plan
from torchyard_farm.jobs.trees import Trees, typical_size

GB = 10**9
LONG = 10_000.0
"""So many seconds are too long for anybody."""


def wish(request: int, memory: int = 1, **fields: object) -> Wish:
    given: dict[str, object] = {"urgency": 1, "since": 0.0, "inputs": {}, **fields}
    return Wish(request, f"f{request}", wants=Amounts(memory, 1), **given)  # type: ignore[arg-type] # as needed


def place(name: str, memory: int = 16, booked: int = 0, idle: int = 1) -> Place:
    return Place(name, Amounts(memory, 100), Amounts(booked, 0), idle)


def test_the_most_urgent_that_fits_begins() -> None:
    wishes = [wish(1), wish(2, urgency=5), wish(3, 32, urgency=9), wish(4, urgency=5)]
    assert choose(wishes, [place("a")], {}, Trees(), 0.0) == Found(wishes[1], "a")
    assert choose(wishes, [place("a", idle=0)], {}, Trees(), 0.0) is None
    assert choose(wishes, [place("a", booked=16)], {}, Trees(), 0.0) is None


def test_jobs_go_where_their_inputs_are() -> None:
    trees = Trees()
    trees.note("a", ["core-1"])
    trees.note("b", ["core-2", "source"])
    one = wish(1, inputs={"core-1": 8000, "source": 2000})
    two = wish(2, inputs={"core-2": 8000, "source": 2000})
    places = [place("a"), place("b"), place("c")]
    assert choose([one], places, {}, trees, 0.0) == Found(one, "a"), "a core outweighs"
    assert choose([two], places, {}, trees, 0.0) == Found(two, "b")
    assert choose([one, two], places[1:], {}, trees, 0.0) == Found(two, "b"), "not the older"
    assert choose([one], places[1:], {}, trees, 0.0) == Found(one, "b"), "the source"
    assert choose([one], places[2:], {}, trees, 0.0) == Found(one, "c"), "nobody idles"
    urgent = wish(3, urgency=2)
    assert choose([one, urgent], places[:1], {}, trees, 0.0) == Found(urgent, "a")


def test_a_machine_with_all_inputs_takes_what_others_would_have_to_fetch() -> None:
    trees = Trees()
    trees.note("a", ["core-1", "core-2"])
    trees.note("b", ["core-1"])
    one, two = wish(1, inputs={"core-1": 8000}), wish(2, inputs={"core-2": 8000})
    assert choose([one, two], [place("a")], {}, trees, 0.0) == Found(two, "a")
    assert choose([one, two], [place("b")], {}, trees, 0.0) == Found(one, "b")


def test_a_machine_waits_a_moment_for_what_belongs_there() -> None:
    trees = Trees()
    trees.note("a", ["core-1", "source"])
    home = wish(1, inputs={"core-1": 8000, "source": 2000})
    foreign = wish(2, inputs={"core-2": 8000, "source": 2000})
    resting = place("a")._replace(rests=True)
    assert choose([foreign], [resting], {}, trees, 0.0) is None
    assert choose([home], [resting], {}, trees, 0.0) == Found(home, "a")
    assert choose([wish(3)], [resting], {}, trees, 0.0) == Found(wish(3), "a")
    assert choose([foreign], [place("a")], {}, trees, 0.0) == Found(foreign, "a")


def test_who_waited_too_long_is_not_passed_over() -> None:
    trees = Trees()
    trees.note("a", ["core-2"])
    one = wish(1, inputs={"core-1": 8000})
    two = wish(2, inputs={"core-2": 8000}, since=LONG)
    assert choose([one, two], [place("a")], {}, trees, 1.0) == Found(two, "a")
    assert choose([one, two], [place("a")], {}, trees, LONG) == Found(one, "a")
    huge = one._replace(wants=Amounts(99, 1))
    assert choose([huge, two], [place("a")], {}, trees, LONG) == Found(two, "a")


def test_a_machine_that_may_not_have_a_job_is_passed_over() -> None:
    begun, other = wish(1, barred=frozenset("b")), wish(2)
    assert choose([begun], [place("b")], {}, Trees(), 0.0) is None
    assert choose([begun], [place("b"), place("a")], {}, Trees(), 0.0) == Found(begun, "a")
    assert choose([begun, other], [place("b")], {}, Trees(), 0.0) == Found(other, "b")


def test_a_job_that_runs_already_is_followed_where_it_runs() -> None:
    first, stray = wish(1, 12), wish(2, 12)
    full = place("a", booked=12)._replace(strays=("f2",))
    assert choose([first], [full], {}, Trees(), 0.0) is None
    assert choose([first, stray], [full, place("b")], {}, Trees(), 0.0) == Found(stray, "a")
    assert full.with_job(stray).booked == full.booked


def test_a_job_without_room_gets_the_machine_that_lacks_least() -> None:
    large, small = wish(1, 12), wish(2)
    places = {p.name: p for p in (place("a", booked=8), place("b", booked=5), place("c", 8))}
    held = reserve([(large, "abc"), (small, "abc")], places, 0.0)
    assert held == {"b": large}
    assert choose([large, small], [places["b"]], held, Trees(), 0.0) is None
    assert choose([large, small], [places["a"]], held, Trees(), 0.0) == Found(small, "a")
    urgent = wish(3, urgency=2)
    assert choose([urgent], [places["b"]], held, Trees(), 0.0) == Found(urgent, "b")
    assert choose([urgent], [places["b"]], held, Trees(), LONG) is None
    assert reserve([(large, "c")], places, 0.0) == {}, "it never fits"
    assert reserve([(large, "ad")], places, 0.0) == {"a": large}, "d is not connected"


def test_several_large_jobs_get_a_machine_each() -> None:
    places = {name: place(name, booked=8) for name in "ab"}
    wishes = [(wish(number, 12, urgency=number), "ab") for number in (1, 2, 3)]
    assert reserve(wishes, places, 0.0) == {"a": wishes[2][0], "b": wishes[1][0]}


@pytest.mark.parametrize("protected", [True, False])
def test_small_jobs_do_not_starve_a_large_one(protected: bool) -> None:
    """Two machines full of small jobs, and for ever more of these, as urgent as the large one."""
    large, began = wish(0, 12), None
    running = [(1 + number % 4, "ab"[number % 2], wish(-1, 4)) for number in range(8)]
    for now in range(100):
        running = [job for job in running if job[0] > now]
        waiting = [wish(now * 10 + number, 4) for number in range(1, 9)]
        waiting += [large] if began is None else []
        while True:
            places = {name: Place(name, Amounts(16, 99), Amounts(), 4) for name in "ab"}
            for _, name, job in running:
                places[name] = places[name].with_job(job)
            held = reserve(((one, "ab") for one in waiting), places, now) if protected else {}
            found = choose(waiting, places.values(), held, Trees(), now)
            if found is None:
                break
            waiting.remove(found.wish)
            running.append((now + 3 + now % 2, found.machine, found.wish))
            began = now if found.wish == large else began
    assert began is None or began < 10
    assert (began is not None) is protected


def test_a_job_books_what_it_needs() -> None:
    assert booked_for(None, 3 * GB) == Amounts(1, 3)


def test_a_machine_has_what_the_file_says_and_no_more_than_there_is() -> None:
    one = machine(memory=16, disk=100)
    assert capacity(one, None) == Amounts(16, 100)
    assert capacity(one, Look(memory=64 * GB, disk=900 * GB)) == Amounts(16, 100)
    less = Look(memory=8 * GB - 1, disk=50 * GB)
    assert capacity(one, less) == Amounts(7, 50)
    assert complaints(one, less) == ("8 GB of memory, not 16 GB", "50 GB of disk, not 100 GB")
    busy = Look(
        memory=64 * GB, disk=60 * GB, jobs={"f": Running(name="core-f", takes=Amounts(8, 40))}
    )
    assert capacity(one, busy) == Amounts(16, 100), "what jobs use of what they booked is no lack"
    assert not complaints(one, busy)


def test_a_job_that_nobody_follows_holds_what_it_booked() -> None:
    jobs = {name: Running(name=f"core-{name}", takes=Amounts(8, 40)) for name in "fg"}
    look = Look(memory=1, disk=1, jobs={**jobs, "h": Running(name="core-h")})
    assert strays(look, ["g"]) == {"f": Amounts(8, 40)}


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
    trees = Trees()
    for number in range(1500):
        trees.note("a", [str(number)])
    assert trees.found("a", {"0": 1, "1499": 1}) == 1
    assert trees.found("b", {"1499": 1}) == 0


def share_at_home(*, prefers: bool, machines: int = 4, cores: int = 12, pythons: int = 5) -> float:
    """Build cores and their bindings; the share of bindings that run where their core was made."""
    chance = Random(7)
    trees = Trees()
    made: dict[str, str] = {}
    waiting = [wish(number, urgency=2) for number in range(cores)]
    running: list[tuple[float, str, Wish]] = []
    now, at_home = 0.0, 0
    released: list[Wish] = []
    while waiting or running:
        busy = {name for _, name, _ in running}
        idle = [place(name) for name in map(str, range(machines)) if name not in busy]
        idle = [one._replace(rests=bool(released)) for one in idle]
        found = choose(waiting, idle, {}, trees if prefers else Trees(), now)
        if found is not None:
            one, name = found
            waiting.remove(one)
            trees.note(name, [*one.inputs, one.fingerprint])
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
            released = [wish(number, inputs={one.fingerprint: 8000}) for number in numbers]
    return at_home / (cores * pythons)


def test_bindings_run_where_their_core_is() -> None:
    assert share_at_home(prefers=True) > 0.8
    assert share_at_home(prefers=False) < 0.4
