"""Plans as files."""

import time
from pathlib import Path

import pytest

from farm.tests.factories import made_plan, real_plan
from torchyard.errors import HostError, SelectionError
from torchyard.model.recipe import Stage
from torchyard.plan.job_specs import make_job_spec
from torchyard_farm.scheduling.plans import Plans, farm_plan, plan_name


def test_what_the_store_has_is_left_out_with_all_that_only_it_needs() -> None:
    plan = real_plan()
    packages = {job.fingerprint for job in plan.jobs if job.stage is Stage.PACKAGE}
    whole = farm_plan(plan, (), name="p", store="s")
    rest = farm_plan(plan, packages, name="p", store="s")
    assert len(whole.jobs) == len(plan)
    assert {rest.task(n).stage for n in range(len(rest.jobs))} == {Stage.CHECK, Stage.SMOKE}
    assert {job.after for job in rest.jobs} == {()}


def test_a_plan_of_nothing_has_no_jobs() -> None:
    plan = real_plan()
    assert farm_plan(plan, plan.fingerprints, name="p", store="s").jobs == ()


def test_a_spec_is_that_which_the_local_engine_gives() -> None:
    plan = real_plan()
    farmed = farm_plan(plan, (), name="p", store="s")
    for number, job in enumerate(farmed.jobs):
        assert farmed.spec(number) == make_job_spec(plan, plan.jobs[job.task])
        assert farmed.spec(number).is_true


def test_the_longest_way_is_the_most_urgent() -> None:
    farmed = farm_plan(real_plan(), (), name="p", store="s")
    by_stage = {farmed.task(n).stage: job.urgency for n, job in enumerate(farmed.jobs)}
    stages = list(by_stage)
    assert stages[:4] == [Stage.SOURCE, Stage.CORE, Stage.BINDINGS, Stage.PACKAGE]
    assert [by_stage[s] for s in stages[:4]] == sorted(
        (by_stage[s] for s in stages[:4]), reverse=True
    )


def test_all_stages_of_a_cell_have_one_history_over_all_versions() -> None:
    farmed = farm_plan(real_plan(), (), name="p", store="s")
    pages = {farmed.task(n).stage: farmed.page(n) for n in range(len(farmed.jobs))}
    assert pages[Stage.SMOKE] == pages[Stage.CHECK] == "demo/linux-x86_64/cpu-openblas/cp312/wheel"
    assert pages[Stage.SOURCE] == "demo"


def test_names_fit_into_buildbots_tables() -> None:
    name = plan_name(real_plan(), "2026-11-15T14:20:00Z")
    assert name.startswith("demo-1.0-20261115T142000Z-")
    assert name != plan_name(real_plan(), "2026-11-15T14:20:01Z")


def test_a_plan_goes_through_its_folders(tmp_path: Path) -> None:
    plans, plan = Plans(tmp_path), made_plan({0: [], 1: [0]})
    assert plans.open() == []
    plans.add(plan)
    assert plans.open() == ["plan"]
    assert plans.read("plan") == plan
    plans.cancel("plan")
    assert plans.cancelled() == ["plan"]
    plans.end("plan")
    plans.end("plan")  # once more, by a master that was killed
    assert (plans.open(), plans.cancelled()) == ([], [])
    assert plans.ended() == ["plan"]
    assert plans.count("plan") == 2
    assert time.time() - plans.moment("plan") < 3600
    assert plans.read("plan") == plan


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    plans = Plans(tmp_path)
    with pytest.raises(SelectionError, match="no plan `other`"):
        plans.read("other")
    with pytest.raises(SelectionError, match="no plan `other` is being built"):
        plans.cancel("other")
    plans.add(made_plan({0: []}))
    (tmp_path / "plans" / "plan.json").write_bytes(b"{")
    assert plans.count("plan") == 0
    with pytest.raises(HostError, match="can't read the plan"):
        plans.read("plan")
    plans.add(made_plan({0: []}))
    assert plans.count("plan") == 1, "it was mended"


def test_of_an_occasion_those_count_that_can_be_read(tmp_path: Path) -> None:
    plans = Plans(tmp_path)
    names = [f"demo-2026111{day}T020000Z-3f09c1@main" for day in (3, 4, 5)]
    for name in names:
        plans.add(made_plan({0: []}, name=name))
    assert plans.of("main") == names[::-1]
    (tmp_path / f"plans/{names[2]}.json").write_text('{"version":2,"jobs":[{}]}', encoding="ascii")
    assert plans.count(names[2]) == 0
    assert [plan.id for plan in plans.past("main")] == names[1::-1]


def test_nothing_but_plans_is_read(tmp_path: Path) -> None:
    plans = Plans(tmp_path / "master")
    plans.add(made_plan({0: ()}))
    (tmp_path / "master/plans/plan.json").rename(tmp_path / "master/secret.json")
    for name in ("../secret", str(tmp_path / "master/secret"), "ended/../../secret"):
        with pytest.raises(SelectionError, match="there is no plan"):
            plans.read(name)
