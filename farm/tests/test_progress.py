"""What became of each job, and how long the rest takes."""

from farm.tests.made import made_plan, real_plan
from torchyard.model.recipe import Stage
from torchyard_farm.jobs.plans import farm_plan
from torchyard_farm.pages.grid import Column, grid_of
from torchyard_farm.pages.history import History, Past, Streak, history_of
from torchyard_farm.pages.progress import Progress, Sent, State, progress_of, seconds_left

CHAIN = {0: [], 1: [0], 2: [1], 3: []}


def states(*sent: Sent, is_over: bool = False) -> list[State]:
    return list(progress_of(made_plan(CHAIN), sent, is_over=is_over).states)


def test_a_job_is_ready_when_all_that_it_needs_is_there() -> None:
    assert states() == [State.READY, State.WAITING, State.WAITING, State.READY]
    assert states(Sent(0, "good"))[:3] == [State.DONE, State.READY, State.WAITING]


def test_a_job_runs_from_its_build_on() -> None:
    assert states(Sent(0, None))[0] is State.READY
    assert states(Sent(0, None, began=1))[0] is State.RUNNING
    assert states(Sent(0, None, began=1, ended=2))[0] is State.READY  # it will be tried again


def test_behind_a_failure_everything_is_blocked() -> None:
    bad = [State.FAILED, State.BLOCKED, State.BLOCKED, State.READY]
    assert states(Sent(0, "bad")) == bad
    assert states(Sent(0, "given up"))[:2] == [State.GIVEN_UP, State.BLOCKED]
    assert states(Sent(0, "quarantined"))[:2] == [State.QUARANTINED, State.BLOCKED]
    assert states(Sent(0, "bad"), Sent(0, None, began=1))[:2] == [State.RUNNING, State.WAITING]


def test_once_good_stays_good() -> None:
    assert states(Sent(0, "good"), Sent(0, "bad"))[0] is State.DONE
    assert states(Sent(0, "bad"), Sent(0, "good"))[0] is State.DONE


def test_what_a_plan_that_is_over_never_sent_was_cancelled() -> None:
    assert states(Sent(0, "good"), Sent(1, "cancelled"), is_over=True) == [
        State.DONE,
        State.CANCELLED,
        State.CANCELLED,
        State.CANCELLED,
    ]


def test_what_was_not_sent_because_of_the_store_is_cached() -> None:
    plan = real_plan()
    packages = {job.fingerprint for job in plan.jobs() if job.stage is Stage.PACKAGE}
    farmed = farm_plan(plan, packages, name="p", store="s")
    found = progress_of(farmed, (), is_over=False)
    assert found.counts == {State.CACHED: len(plan) - len(farmed.jobs), State.READY: 4}


def test_a_failure_is_known_since_the_first_of_those_in_a_row() -> None:
    found = progress_of(made_plan(CHAIN), [Sent(0, "bad"), Sent(3, "given up")], is_over=False)
    past = [
        Past(7, "package", good=False, ended=9),
        Past(7, "check", good=True, ended=8),  # another job of the same cell
        Past(7, "package", good=False, ended=5),
        Past(7, "package", good=True, ended=4),
        Past(7, "package", good=False, ended=3),
    ]
    pages = {0: 7, 1: 7, 3: 8}
    assert history_of(found, pages, past) == History(pages, {0: Streak(since=5, times=2)})
    assert history_of(found, {}, past) == History({}, {})


def test_what_failed_first_comes_first_wherever_it_is_listed() -> None:
    sent = [Sent(0, "bad", ended=9), Sent(3, "given up", ended=5)]
    assert progress_of(made_plan(CHAIN), sent, is_over=False).trouble == [3, 0]


def test_nobody_guesses_how_long_the_rest_takes() -> None:
    def left(*sent: Sent) -> int | None:
        return seconds_left(progress_of(made_plan(CHAIN), sent, is_over=False), 200)

    done = Sent(3, "good", began=0, ended=100)
    assert left() is None  # nothing was ever measured
    assert left(done) is None  # nothing runs
    assert left(done, Sent(0, None, began=150)) == 50 + 100 + 100  # one after the other
    assert left(done, Sent(0, None, began=1)) == 200  # it is late, which says nothing of the others
    assert left(done, Sent(0, "bad", began=0, ended=1)) is None


def test_the_rest_is_shared_by_the_machines_that_work() -> None:
    plan = made_plan({number: [] for number in range(9)})
    sent = [Sent(0, "good", began=0, ended=100), Sent(1, None, began=100), Sent(2, None, began=100)]
    assert seconds_left(progress_of(plan, sent, is_over=False), 100) == 400


def test_a_grid_has_a_block_for_each_core_and_a_line_for_each_python() -> None:
    farmed = farm_plan(real_plan(), (), name="p", store="s")
    grid = grid_of(farmed)
    assert [farmed.tasks[task].stage for task in grid.shared] == [Stage.SOURCE]
    assert list(grid.columns) == [
        Column("", Stage.CORE),
        Column("", Stage.BINDINGS),
        Column("wheel", Stage.PACKAGE),
        Column("wheel", Stage.CHECK),
        Column("wheel", Stage.SMOKE),
    ]
    (block,) = grid.blocks
    assert block.name == "linux-x86_64/cpu-openblas"
    assert [line.name for line in block.lines] == ["cp311", "cp312"]
    assert sorted([*grid.shared, *block.tasks]) == list(range(len(farmed.tasks)))


def test_progress_counts_all_tasks() -> None:
    found: Progress = progress_of(made_plan(CHAIN), [Sent(0, "good")], is_over=False)
    assert found.counts == {State.DONE: 1, State.READY: 2, State.WAITING: 1}
