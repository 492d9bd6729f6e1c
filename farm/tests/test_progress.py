"""The state of each job, and the remaining time."""

from farm.tests.factories import made_plan, real_plan
from torchyard.model.recipe import Stage
from torchyard_farm.scheduling.plans import farm_plan
from torchyard_farm.web.grid import GridColumn, plan_grid
from torchyard_farm.web.history import History, PastBuild, Streak, task_history
from torchyard_farm.web.progress import (
    JobAttempt,
    PlanProgress,
    TaskState,
    plan_progress,
    seconds_left,
)

CHAIN = {0: [], 1: [0], 2: [1], 3: []}


def states(*sent: JobAttempt, is_over: bool = False) -> list[TaskState]:
    return list(plan_progress(made_plan(CHAIN), sent, is_over=is_over).states)


def test_a_job_is_ready_when_all_that_it_needs_is_there() -> None:
    assert states() == [TaskState.READY, TaskState.WAITING, TaskState.WAITING, TaskState.READY]
    assert states(JobAttempt(0, "good"))[:3] == [TaskState.DONE, TaskState.READY, TaskState.WAITING]


def test_a_job_runs_from_its_build_on() -> None:
    assert states(JobAttempt(0, None))[0] is TaskState.READY
    assert states(JobAttempt(0, None, began=1))[0] is TaskState.RUNNING
    assert states(JobAttempt(0, None, began=1, ended=2))[0] is TaskState.READY  # it will be retried


def test_behind_a_failure_everything_is_blocked() -> None:
    bad = [TaskState.FAILED, TaskState.BLOCKED, TaskState.BLOCKED, TaskState.READY]
    assert states(JobAttempt(0, "bad")) == bad
    assert states(JobAttempt(0, "given up"))[:2] == [TaskState.GIVEN_UP, TaskState.BLOCKED]
    assert states(JobAttempt(0, "quarantined"))[:2] == [TaskState.QUARANTINED, TaskState.BLOCKED]
    assert states(JobAttempt(0, "bad"), JobAttempt(0, None, began=1))[:2] == [
        TaskState.RUNNING,
        TaskState.WAITING,
    ]


def test_once_good_stays_good() -> None:
    assert states(JobAttempt(0, "good"), JobAttempt(0, "bad"))[0] is TaskState.DONE
    assert states(JobAttempt(0, "bad"), JobAttempt(0, "good"))[0] is TaskState.DONE


def test_what_a_plan_that_is_over_never_sent_was_cancelled() -> None:
    assert states(JobAttempt(0, "good"), JobAttempt(1, "cancelled"), is_over=True) == [
        TaskState.DONE,
        TaskState.CANCELLED,
        TaskState.CANCELLED,
        TaskState.CANCELLED,
    ]


def test_what_was_not_sent_because_of_the_store_is_cached() -> None:
    plan = real_plan()
    packages = {job.fingerprint for job in plan.jobs if job.stage is Stage.PACKAGE}
    farmed = farm_plan(plan, packages, name="p", store="s")
    found = plan_progress(farmed, (), is_over=False)
    assert found.counts == {TaskState.CACHED: len(plan) - len(farmed.jobs), TaskState.READY: 4}


def test_a_failure_is_known_since_the_first_of_those_in_a_row() -> None:
    found = plan_progress(
        made_plan(CHAIN), [JobAttempt(0, "bad"), JobAttempt(3, "given up")], is_over=False
    )
    past = [
        PastBuild(7, "package", good=False, ended=9),
        PastBuild(7, "check", good=True, ended=8),  # another job of the same cell
        PastBuild(7, "package", good=False, ended=5),
        PastBuild(7, "package", good=True, ended=4),
        PastBuild(7, "package", good=False, ended=3),
    ]
    pages = {0: 7, 1: 7, 3: 8}
    assert task_history(found, pages, past) == History(pages, {0: Streak(since=5, times=2)})
    assert task_history(found, {}, past) == History({}, {})


def test_what_failed_first_comes_first_wherever_it_is_listed() -> None:
    sent = [JobAttempt(0, "bad", ended=9), JobAttempt(3, "given up", ended=5)]
    assert plan_progress(made_plan(CHAIN), sent, is_over=False).trouble == [3, 0]


def test_nobody_guesses_how_long_the_rest_takes() -> None:
    def left(*sent: JobAttempt) -> int | None:
        return seconds_left(plan_progress(made_plan(CHAIN), sent, is_over=False), 200)

    done = JobAttempt(3, "good", began=0, ended=100)
    assert left() is None  # nothing was ever measured
    assert left(done) is None  # nothing runs
    assert left(done, JobAttempt(0, None, began=150)) == 50 + 100 + 100  # one after the other
    assert (
        left(done, JobAttempt(0, None, began=1)) == 200
    )  # it is late, which says nothing of the others
    assert left(done, JobAttempt(0, "bad", began=0, ended=1)) is None


def test_the_rest_is_shared_by_the_machines_that_work() -> None:
    plan = made_plan({number: [] for number in range(9)})
    sent = [
        JobAttempt(0, "good", began=0, ended=100),
        JobAttempt(1, None, began=100),
        JobAttempt(2, None, began=100),
    ]
    assert seconds_left(plan_progress(plan, sent, is_over=False), 100) == 400


def test_a_grid_has_a_block_for_each_core_and_a_line_for_each_python() -> None:
    farmed = farm_plan(real_plan(), (), name="p", store="s")
    grid = plan_grid(farmed)
    assert [farmed.tasks[task].stage for task in grid.shared] == [Stage.SOURCE]
    assert list(grid.columns) == [
        GridColumn("", Stage.CORE),
        GridColumn("", Stage.BINDINGS),
        GridColumn("wheel", Stage.PACKAGE),
        GridColumn("wheel", Stage.CHECK),
        GridColumn("wheel", Stage.SMOKE),
    ]
    (block,) = grid.blocks
    assert block.name == "linux-x86_64/cpu-openblas"
    assert [line.name for line in block.lines] == ["cp311", "cp312"]
    assert sorted([*grid.shared, *block.tasks]) == list(range(len(farmed.tasks)))


def test_progress_counts_all_tasks() -> None:
    found: PlanProgress = plan_progress(made_plan(CHAIN), [JobAttempt(0, "good")], is_over=False)
    assert found.counts == {TaskState.DONE: 1, TaskState.READY: 2, TaskState.WAITING: 1}
