"""Plans and machines for tests."""

from collections.abc import Mapping, Sequence

import msgspec

from tests.support.helpers import WORKS, plan_of
from torchyard.model.job_spec import Task
from torchyard.model.matrix import Needs
from torchyard.model.recipe import Stage
from torchyard.plan.graph import Plan
from torchyard_farm.scheduling.plans import FarmPlan, PlannedJob
from torchyard_farm.scheduling.resources import Resources
from torchyard_farm.settings.farm import FarmMachine

KIND = "linux-x86_64"
GB = 10**9


_GIT = WORKS.replace('path = "code"', 'git = "https://example.org/demo"\nrev = "v1"')


def real_plan() -> Plan:
    return plan_of(_GIT)


def machine(name: str = "w1", **fields: object) -> FarmMachine:
    given: dict[str, object] = {"platform": KIND, "memory": 16, "disk": 100, **fields}
    return FarmMachine(name=name, **given)  # type: ignore[arg-type] # each test gives what it needs


def task(number: int) -> Task:
    return Task(
        id=f"package:demo-1.0/{KIND}/cpu-openblas/cp3{number}/wheel",
        stage=Stage.PACKAGE,
        stage_revision=1,
        scope=f"{KIND}/cpu-openblas/cp3{number}/wheel",
        recipe="pytorch",
        fingerprint=f"{number:064x}",
    )


def made_plan(
    after: Mapping[int, Sequence[int]],
    *,
    name: str = "plan",
    kinds: Mapping[int, str] | None = None,
    wants: Mapping[int, Resources] | None = None,
) -> FarmPlan:
    """Return a plan from each job's predecessors; smaller numbers are more urgent."""
    jobs = tuple(
        PlannedJob(
            task=number,
            kind=(kinds or {}).get(number, KIND),
            after=tuple(others),
            urgency=len(after) - number,
        )
        for number, others in sorted(after.items())
    )
    needs = {
        number: Needs(memory=amounts.memory * GB, disk=amounts.disk * GB)
        for number, amounts in (wants or {}).items()
    }
    tasks = tuple(
        msgspec.structs.replace(task(number), needs=needs.get(number, Needs()))
        for number in range(len(after))
    )
    return FarmPlan(id=name, store="file:///store", tasks=tasks, jobs=jobs)


def matrix_plan(blocks: int, *, name: str = "matrix") -> FarmPlan:
    """Return a plan with 81 jobs for each block: a core, eight Pythons, three packages each."""
    tasks: list[Task] = []
    jobs: list[PlannedJob] = []

    def add(stage: Stage, scope: str, *after: int) -> int:
        job = "/".join(filter(None, (f"{stage}:demo-1.0", scope)))
        made = msgspec.structs.replace(task(len(tasks)), id=job, stage=stage, scope=scope)
        tasks.append(made)
        jobs.append(PlannedJob(task=len(jobs), kind=KIND, after=after))
        return len(jobs) - 1

    def add_package(scope: str, *after: int) -> None:
        package = add(Stage.PACKAGE, scope, *after)
        add(Stage.CHECK, scope, package)
        add(Stage.SMOKE, scope, package)

    source = add(Stage.SOURCE, "")
    for number in range(blocks):
        block = f"{KIND}/cu{number}-mkl"
        core = add(Stage.CORE, block, source)
        for python in range(10, 18):
            bindings = add(Stage.BINDINGS, f"{block}/cp3{python}", core)
            for package in ("wheel", "conda", "debug"):
                add_package(f"{block}/cp3{python}/{package}", bindings)
    return FarmPlan(id=name, store="file:///store", tasks=tuple(tasks), jobs=tuple(jobs))
