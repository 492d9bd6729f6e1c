"""Daily trials, and since when a package fails."""

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from farm.tests.factories import KIND
from tests.support.helpers import SMALL, config_of
from torchyard.index.entry import Entry
from torchyard.publish.select import Chosen
from torchyard.recipes import steps_of
from torchyard_farm.scheduling.plan_tracker import PlanTracker
from torchyard_farm.scheduling.plans import FarmPlan
from torchyard_farm.scheduling.trials import ChannelTrial, trial_plan
from torchyard_farm.settings.dates import parse_times
from torchyard_farm.settings.schedules import Daily
from torchyard_farm.web.grid import plan_grid
from torchyard_farm.web.history import failure_streak


@given(st.lists(st.booleans(), max_size=30))
def test_the_first_failure_after_the_last_success(results: list[bool]) -> None:
    """Computed forwards: a success ends a streak, the first failure starts it."""
    since, times = None, 0
    for day, good in enumerate(results):
        if good:
            since, times = None, 0
        else:
            since, times = day if since is None else since, times + 1
    found = failure_streak((good, day) for day, good in reversed(list(enumerate(results))))
    assert found == (None if since is None else (since, times))


def entry(file: str, cell: str = "", variant: str = "cpu") -> Entry:
    return Entry(
        file=file,
        version="2.14.0+cpu",
        variant=variant,
        sha256="00" * 32,
        size=1,
        uploaded="2026-11-15T00:00:00Z",
        cell=cell,
    )


CELL = "torch-2.14.0/linux-x86_64/cpu-mkl/cp312/wheel"
CHOSEN = [
    Chosen("simple/torch", entry("torch-2.14.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl", CELL)),
    Chosen("simple/other", entry("other-2.14.0+cpu-cp312-cp312-macosx_14_0_arm64.whl")),
    Chosen("simple/pure", entry("pure-2.14.0+cpu-py3-none-any.whl", variant="")),
]
DAILY = Daily(
    name="published",
    times=parse_times("06:00"),
    channel="nightly",
    url="https://example.org/nightly",
    select=("*",),
    extra_index_urls=("https://example.org/simple",),
)


EVERY = (KIND, "macos-arm64", "any")


def plan_of(day: int, kinds: Collection[str] = EVERY) -> tuple[FarmPlan, dict[str, int]]:
    trial = ChannelTrial(DAILY, config_of(SMALL), f"2026-11-{day}T06:00:00Z", "file:///store")
    return trial_plan(trial, CHOSEN, kinds)


def test_each_file_is_a_job_of_its_own_on_a_machine_that_fits() -> None:
    plan, _ = plan_of(15)
    assert plan.id.startswith("published-20261115T060000Z-")
    assert plan.id.endswith("@published")
    assert [job.kind for job in plan.jobs] == [KIND, "macos-arm64", "any"]
    assert [plan.page(number) for number in range(3)] == [
        f"published: torch/{CELL.partition('/')[2]}",
        "published: other/macos-arm64/cpu-any/cp312/wheel",
        "published: pure/any/any-any/any/wheel",
    ]
    for number in range(3):
        spec = plan.spec(number)
        assert spec.is_true
        (step,) = steps_of(spec)
        assert step.network
        assert "visit" in step.run


def test_every_day_is_another_try_and_the_same_page() -> None:
    (first, _), (second, _) = plan_of(15), plan_of(16)
    prints = [{task.fingerprint for task in plan.tasks} for plan in (first, second)]
    assert not prints[0] & prints[1]
    assert first.page(0) == second.page(0)


def test_what_no_machine_can_try_is_told() -> None:
    plan, left_out = plan_of(15, {KIND, "any"})
    assert left_out == {"macos-arm64": 1}
    assert [task.facts["name"] for task in plan.tasks] == ["torch", "pure"]


def test_projects_stand_beside_each_other_in_the_grid() -> None:
    grid = plan_grid(plan_of(15)[0])
    assert [block.name for block in grid.blocks] == [
        "torch/linux-x86_64/cpu-mkl",
        "other/macos-arm64/cpu-any",
        "pure/any/any-any",
    ]


def test_a_trial_is_over_with_failures_too() -> None:
    plan, _ = plan_of(15, {KIND, "any"})
    tracker = PlanTracker({KIND: 9, "any": 9})
    tracker.add(plan)
    while (found := tracker.next()) is not None:
        assert not tracker.is_over(plan.id)
        tracker.end(plan.id, found[1], good=False)
    assert tracker.is_over(plan.id)
