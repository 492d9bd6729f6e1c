"""Which jobs are needed, and in which order they come."""

from tests.support.helpers import WORKS, plan_of

from torchyard.engines.pending import JobGraph, job_graph, missing_jobs, urgency
from torchyard.engines.schedule import Schedule
from torchyard.model.recipe import Stage
from torchyard.plan.graph import Plan

TEXT = WORKS.replace('path = "code"', 'git = "https://example.org/x"\nrev = "v1"')


def whole(graph: JobGraph, urgencies: list[int]) -> Schedule:
    """Everything that is wanted, with nothing in the store."""
    return Schedule(graph, (), missing_jobs(graph, (), graph.wanted), urgencies)


def number_of(plan: Plan, stage: Stage, path: str = "") -> int:
    return plan.find(stage, path).number


def test_the_longest_way_comes_first() -> None:
    plan = plan_of(TEXT + '\n[requirements.bindings]\ntime = "2 h"\n')
    graph = job_graph(plan)
    schedule = whole(graph, urgency(plan, graph))
    order = []
    while (number := schedule.next(0.0)) is not None:
        order.append(plan.jobs[number].stage.value)
        schedule.done(number)
    assert order[:4] == ["source", "core", "bindings", "bindings"]
    assert not schedule.left
    assert len(order) == len(plan) == 10


def test_what_a_result_was_made_from_is_not_asked_for() -> None:
    plan = plan_of(TEXT)
    graph = job_graph(plan)
    cells = [job for job in plan.jobs if job.stage in ("package", "check")]
    known = {job.fingerprint for job in cells}
    needed = missing_jobs(graph, known, graph.wanted)
    assert {plan.jobs[number].stage for number in needed} == {"smoke"}


def test_a_job_is_given_out_once_even_if_it_is_lost_twice() -> None:
    """Two jobs find at the same time that their input has vanished."""
    graph = JobGraph(["a", "b", "c"], [(), (0,), (0,)], [[1, 2], [], []], frozenset({1, 2}))
    schedule = Schedule(graph, {"a"}, {1, 2}, [3, 2, 1])
    taken = {schedule.next(0.0), schedule.next(0.0)}
    assert taken == {1, 2}
    schedule.lost(1, lambda _: False)
    schedule.put_back(1)
    assert schedule.next(0.0) == 0
    schedule.lost(2, lambda _: False)
    schedule.put_back(2)
    assert schedule.next(0.0) is None
    schedule.done(0)
    assert [schedule.next(0.0), schedule.next(0.0), schedule.next(0.0)] == [1, 2, None]


def test_a_job_that_failed_takes_along_what_needs_it() -> None:
    plan = plan_of(TEXT)
    graph = job_graph(plan)
    schedule = whole(graph, urgency(plan, graph))
    schedule.done(number_of(plan, Stage.SOURCE))
    core = number_of(plan, Stage.CORE, "linux-x86_64/cpu-openblas")
    assert len(schedule.fail(core)) == 8
    assert not schedule.left
    assert schedule.next(0.0) is None


def test_a_postponed_job_comes_in_its_time() -> None:
    graph = JobGraph(["a"], [()], [[]], frozenset({0}))
    schedule = whole(graph, [1])
    assert schedule.next(0.0) == 0
    schedule.put_back(0, until=5.0)
    assert schedule.next(4.0) is None
    assert schedule.has_work
    assert schedule.next(6.0) == 0
