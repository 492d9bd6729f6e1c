"""What is not submitted: what no worker could do, and nothing that only this machine lacks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.spoils import OF_PROJECT, SPOILS, Yard, forget
from torchyard.errors import TorchyardError
from torchyard.host.machine import platform_name
from torchyard.workspace.build_request import BuildRequest
from torchyard_farm.cli.submission import draft_plan, submit_draft
from torchyard_farm.scheduling.plans import FarmPlan, Plans
from torchyard_farm.settings.farm import parse_farm

pytestmark = pytest.mark.skipif(platform_name() != "linux-x86_64", reason="cells are of Linux")

FARM = """
file = "torchyard.toml"
[worker.w1]
platform = "linux-x86_64"
memory = "200 GB"
disk = "900 GB"
"""


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Yard]:
    forget()
    yield Yard(tmp_path, monkeypatch)
    forget()


def submit(yard: Yard) -> FarmPlan:
    file = str(yard.file)
    made = draft_plan(BuildRequest(file, select=["cpu"]), "2026-11-18T02:00:00Z")
    return submit_draft(made, file, yard.folder / "farm", parse_farm(FARM))


@pytest.mark.parametrize("name", sorted(OF_PROJECT))
def test_what_no_worker_could_do_is_refused(name: str, yard: Yard) -> None:
    """It was submitted, and failed on a worker."""
    SPOILS[name].spoil(yard)
    with pytest.raises(TorchyardError) as refused:
        submit(yard)
    assert SPOILS[name].says in str(refused.value)
    assert Plans(yard.folder / "farm").open() == []


@pytest.mark.parametrize("name", ["a-python-without-headers", "no-git"])
def test_what_this_machine_lacks_is_left_to_the_workers(name: str, yard: Yard) -> None:
    SPOILS[name].spoil(yard)
    assert submit(yard).jobs
