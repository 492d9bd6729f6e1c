"""Which machine can do which job."""

import msgspec
import pytest

from farm.tests.factories import machine, real_plan, task
from tests.support.helpers import EXAMPLE, plan_of
from torchyard.model.matrix import Needs
from torchyard.model.recipe import Stage
from torchyard_farm.scheduling.job_classes import (
    job_class,
    job_classes_of,
    machines_by_class,
    queue_window,
    why_impossible,
)
from torchyard_farm.scheduling.plans import farm_plan
from torchyard_farm.scheduling.resources import whole_gigabytes


def with_needs(**needs: object) -> Needs:
    return msgspec.convert(needs, Needs)


def test_a_job_asks_for_its_platform_and_capabilities() -> None:
    assert job_class(task(1)) == "linux-x86_64"
    wants = msgspec.structs.replace(task(1), needs=with_needs(capabilities=["gpu", "cuda", "gpu"]))
    assert job_class(wants) == "linux-x86_64+cuda+gpu"


def test_the_source_can_be_fetched_anywhere() -> None:
    plan = farm_plan(real_plan(), (), name="p", store="s")
    kinds = {plan.task(n).stage: job.kind for n, job in enumerate(plan.jobs)}
    assert kinds[Stage.SOURCE] == "any"
    assert kinds[Stage.SMOKE] == "linux-x86_64"


def test_a_machine_takes_whatever_asks_for_less_than_it_has() -> None:
    kinds = set(job_classes_of(machine(capabilities=("gpu", "cuda"))))
    assert {"any", "linux-x86_64", "linux-x86_64+cuda", "linux-x86_64+cuda+gpu"} < kinds
    assert "linux-x86_64+avx" not in kinds


def test_who_publishes_does_nothing_else_and_is_alone_in_it() -> None:
    able = machines_by_class([machine("w1"), machine("pub", publish=True)])
    assert [m.name for m in able["publish"]] == ["pub"]
    assert [m.name for m in able["any"]] == ["w1"]
    publishing = msgspec.structs.replace(task(1), stage=Stage.PUBLISH)
    assert job_class(publishing) == "publish"


@pytest.mark.parametrize(
    ("amount", "booked"), [(None, 1), (0, 1), (1, 1), (10**9, 1), (10**9 + 1, 2), (64 * 10**9, 64)]
)
def test_gigabytes_are_rounded_up(amount: int | None, booked: int) -> None:
    assert whole_gigabytes(amount) == booked


def test_a_job_that_no_machine_can_do_is_told() -> None:
    large = msgspec.structs.replace(task(1), needs=with_needs(memory=64 * 10**9))
    assert why_impossible(task(1), [machine()]) == ""
    assert why_impossible(task(1), []) == "no machine of the farm can do jobs of class linux-x86_64"
    assert (
        why_impossible(large, [machine()])
        == "it needs 64 GB of memory, and no machine has more than 16"
    )
    assert why_impossible(large, [machine(), machine("big", memory=64)]) == ""


def test_the_window_holds_more_than_all_slots() -> None:
    assert queue_window([machine()]) == 8
    assert queue_window([machine(slots=4), machine(slots=8)]) == 24


def test_the_jobs_of_pytorch_ask_for_what_their_file_says() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    text += '[[override]]\nstage = "smoke"\ncompute = "cu*"\nneeds = { capabilities = ["gpu"] }\n'
    plan = farm_plan(plan_of(text), (), name="p", store="s")
    on_gpus = [job for job in plan.jobs if "gpu" in job.kind]
    for job in plan.jobs:
        task = plan.tasks[job.task]
        platform, compute = [*task.scope.split("/"), "", ""][:2]
        wants = task.stage is Stage.SMOKE and compute.startswith("cu")
        assert job.kind == f"{platform or 'any'}{'+gpu' if wants else ''}"
        assert whole_gigabytes(task.needs.disk) > 1
    assert {plan.tasks[job.task].needs.memory for job in on_gpus} == {4 * 10**9}
    assert {job.kind for job in on_gpus} == {
        "linux-x86_64+gpu",
        "linux-aarch64+gpu",
        "windows-x86_64+gpu",
    }
    cores = {task.needs.memory for task in plan.tasks if task.stage is Stage.CORE}
    assert cores == {32 * 10**9, 120 * 10**9}
