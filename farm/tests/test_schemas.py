"""Schemas describe what the farm reads and prints."""

import json
import tomllib
from io import StringIO

import msgspec
import pytest
from msgspec import structs
from rich.console import Console

from tests.support.schemas import validate
from torchyard_farm.client.runs import RunState
from torchyard_farm.client.status import (
    FailingState,
    HeldJob,
    PlanState,
    Status,
    UnreadablePlan,
    WorkerState,
    status_report,
)
from torchyard_farm.scheduling.attempts import AttemptRecord, AttemptVerdict, explain_verdict
from torchyard_farm.settings.layout import farm_text

PLAN = "torch-2.14.0.dev20261115-20261115T142000Z-3f09c1"
CELL = "linux-x86_64/cu130-openblas/cp313/conda-libtorch"
SMOKE = f"smoke:torch-2.14.0/{CELL}"
LOST = AttemptVerdict.QUARANTINED
TRIES = [AttemptRecord(name, AttemptVerdict.LOST) for name in ("w1", "w2", "w3")]
STATUS = Status(
    version=1,
    workers=(
        WorkerState(
            name="w1-1", machine="w1", connected=True, lacks=("25.3 GB of memory, not 64 GB",)
        ),
        WorkerState(name="uploads", machine="uploads", connected=False, lacks=()),
    ),
    plans=(
        PlanState(
            id=PLAN,
            jobs=12345,
            good=9876,
            bad=1,
            out=16,
            failed=(SMOKE,),
            held=(HeldJob(job=SMOKE, verdict=LOST, why=explain_verdict(LOST, TRIES)),),
        ),
    ),
    unreadable=(UnreadablePlan(id=f"{PLAN}@torn", why="`/a/plan` is none", hint="upgrade"),),
    runs=(
        RunState(
            kind="nightly",
            name="main",
            next="2026-11-16T02:00:00Z",
            last="2026-11-15T02:00:00Z",
            outcome="good",
            told=f"{PLAN}@main",
        ),
        RunState(
            kind="daily",
            name="published",
            next="2026-11-16T06:00:00Z",
            last=None,
            outcome=None,
            told=None,
        ),
    ),
    failing=(
        FailingState(
            daily="published",
            job=f"smoke:torch-2.14.0/{CELL}",
            page=f"published: torch/{CELL}",
            since="2026-11-13T06:00:07Z",
            times=3,
        ),
    ),
)


def test_a_status_fits_its_schema() -> None:
    validate(json.loads(msgspec.json.encode(STATUS)), "farm-status")


def test_a_new_farm_fits_its_schema() -> None:
    text = farm_text("torchyard.toml", "sqlite:///state.sqlite", ["linux-x86_64"])
    validate(tomllib.loads(text), "farm")


@pytest.mark.parametrize("width", [60, 80])
def test_a_status_fits_a_narrow_terminal(width: int) -> None:
    out = StringIO()
    Console(file=out, width=width).print(status_report(STATUS))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert max(map(len, lines)) <= width
    told = " ".join(out.getvalue().split())
    assert "w1-1 w1 connected, but has 25.3 GB of memory, not 64 GB uploads" in told
    assert f"plan {PLAN} 9,876 of 12,345 jobs done, 16 submitted, 1 failed" in told
    assert f"nightly main last 2026-11-15 02:00 UTC {PLAN}@main".replace(" ", "") in (
        told.replace(" ", "")
    )
    assert f"plan {PLAN}@torn".replace(" ", "") in told.replace(" ", "")
    assert "skipped: `/a/plan` is none hint upgrade" in told
    assert "since 2026-11-13, 3 times in a row (published)" in told
    assert "daily published last never next 2026-11-16 06:00 UTC" in told
    assert f"smoke:torch-2.14.0/{CELL}" in told.replace(" ", "")


def test_a_plan_that_failed_is_not_told_as_one_that_runs() -> None:
    failed = structs.replace(STATUS.plans[0], out=0)
    out = StringIO()
    Console(file=out, width=80).print(status_report(structs.replace(STATUS, plans=(failed,))))
    told = " ".join(out.getvalue().split())
    assert "9,876 of 12,345 jobs done, 1 failed: it waits for Rebuild or cancel" in told


def test_names_are_told_whole_and_nothing_rules_the_terminal() -> None:
    name = "a_machine_with_quite_a_long_name"
    worker = WorkerState(name=f"{name}-12", machine=name, connected=True, lacks=("no memory",))
    evil = "\x1b[2Jgone"
    plan = structs.replace(
        STATUS.plans[0], held=(HeldJob(job=SMOKE, verdict=AttemptVerdict.GIVEN_UP, why=evil),)
    )
    runs = (structs.replace(STATUS.runs[0], outcome="bad", told=evil),)
    out = StringIO()
    status = structs.replace(STATUS, workers=(worker,), plans=(plan,), runs=runs)
    Console(file=out, width=60).print(status_report(status))
    assert "…" not in out.getvalue()
    assert "\x1b" not in out.getvalue()
    assert out.getvalue().count(r"\x1b[2Jgone") == 2
