"""Jobs run where their inputs are, and never on a machine without room for them."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from farm.tests.farms import LONG, TrialFarm, wait_until
from tests.support.helpers import WORKS, make_project

pytestmark = pytest.mark.integration

PATIENCE = 300
_BLAS = ("openblas", "mkl")


def farm_of(
    stack: ExitStack,
    folder: Path,
    text: str,
    names: tuple[str, ...],
    slots: int = 1,
    *,
    tables: str = "",
) -> TrialFarm:
    file = make_project(folder / "project", text)
    farm = TrialFarm(folder / "farm", file, "sqlite:///state.sqlite", names, slots, tables=tables)
    return stack.enter_context(farm)


def ended(folder: Path) -> list[str]:
    """Return the lines that jobs logged."""
    path = folder / "times"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def machines_of(farm: TrialFarm) -> dict[str, str]:
    """Return the machine of each job."""
    builds = farm._ask("builds?property=task&property=machine")["builds"]
    told = [build["properties"] for build in builds]  # type: ignore[index]
    return {one["task"][0]: one["machine"][0] for one in told}


@pytest.mark.slow
def test_bindings_run_where_their_core_was_made_also_after_a_restart(
    stack: ExitStack, tmp_path: Path
) -> None:
    """The first bindings wait, so all others are placed by a master that read the locality.

    Each job waits for one on the other machine: so neither machine is idle while the other one has
    jobs, and each builds one core.
    """
    meet = (
        f"echo begun >> {tmp_path}/times; n=$(wc -l < {tmp_path}/times); "
        f"until test $(wc -l < {tmp_path}/times) -ge $(((n + 1) / 2 * 2)); do sleep 0.2; done"
    )
    wait = f"while ! test -e {tmp_path}/go; do sleep 0.2; done"
    text = (
        WORKS.replace('["openblas"]', '["openblas", "mkl"]')
        .replace('"cp311", "cp312"', '"cp310", "cp311", "cp312", "cp313"')
        .replace("mkdir -p {out}/lib", f"{meet}; mkdir {{out}}/lib")
        .replace("cat {core}/lib", f"{meet}; {wait}; cat {{core}}/lib")
    )
    farm = farm_of(stack, tmp_path, text, ("w1", "w2"))
    farm.start_master()
    farm.start_workers()
    plan = farm.submit("bindings:*")
    wait_until(lambda: len(ended(tmp_path)) == 4, PATIENCE, farm.log)
    farm.kill("master")
    farm.start_master()
    wait_until(lambda: farm.connected() == {"w1", "w2"}, PATIENCE, farm.log)
    (tmp_path / "go").touch()
    farm.wait_done(plan)
    where = machines_of(farm)
    cores = {blas: where[f"core:demo-1.0/linux-x86_64/cpu-{blas}"] for blas in _BLAS}
    assert set(cores.values()) == {"w1", "w2"}
    bindings = {name: at for name, at in where.items() if name.startswith("bindings:")}
    at_home = [cores[blas] == at for name, at in bindings.items() for blas in _BLAS if blas in name]
    assert len(at_home) == 8
    # A machine may be idle before the bindings of its own core are submitted: then it takes one of
    # the other core, and the other machine one of its at the end.
    assert sum(at_home) >= 6, where


SHARED = """
[[override]]
stage = "bindings"
needs = { memory = "5 GB" }

[[override]]
stage = "bindings"
python = "cp312"
needs = { memory = "5 GB", capabilities = ["fast"] }
"""


def never_two_at_once(lines: list[str]) -> bool:
    return all(line == ("in", "out")[number % 2] for number, line in enumerate(lines))


@pytest.mark.slow
def test_what_a_machine_has_is_shared_by_all_kinds_of_jobs_and_no_more_than_there_is(
    stack: ExitStack, tmp_path: Path
) -> None:
    step = f"echo in >> {tmp_path}/times; sleep 2; echo out >> {tmp_path}/times; cat {{core}}/lib"
    farm = farm_of(stack, tmp_path, WORKS.replace("cat {core}/lib", step) + SHARED, ("w1",), 2)
    file = farm.master / "farm.toml"
    said = file.read_text(encoding="utf-8").replace('disk = "8 GB"', 'disk = "900 TB"')
    file.write_text(f'{said}capabilities = ["fast"]\n', encoding="utf-8")
    farm.start_master()
    farm.start_workers()
    plan = farm.submit("bindings:*")
    farm.wait_done(plan)
    assert len(ended(tmp_path)) == 4
    assert never_two_at_once(ended(tmp_path))

    wait_until((farm.master / "machines.json").exists, LONG, farm.log)
    workers = json.loads(farm.run("status", "--json"))["workers"]
    assert [worker["name"] for worker in workers] == ["w1-1", "w1-2"]
    for worker in workers:
        (lack,) = worker["lacks"]
        assert lack.endswith("of disk, not 900000 GB")


@pytest.mark.slow
def test_a_job_holds_its_memory_while_nobody_follows_it(stack: ExitStack, tmp_path: Path) -> None:
    """Two cores that do not fit at once; the worker process is killed while one runs."""
    wait = f"while ! test -e {tmp_path}/go; do sleep 0.2; done"
    step = f"echo in >> {tmp_path}/times; {wait}; echo out >> {tmp_path}/times; mkdir {{out}}/lib"
    text = WORKS.replace('["openblas"]', '["openblas", "mkl"]').replace("mkdir -p {out}/lib", step)
    text += '\n[requirements.core]\nmemory = "5 GB"\n'
    farm = farm_of(stack, tmp_path, text, ("w1",), 2)
    farm.start_master()
    farm.start_workers()
    plan = farm.submit("core:*")
    wait_until(lambda: ended(tmp_path) == ["in"], PATIENCE, farm.log)
    farm.kill("w1")
    farm.start_worker("w1")
    wait_until(lambda: farm.has_said("which no build follows"), PATIENCE, farm.log)
    (tmp_path / "go").touch()
    farm.wait_done(plan)
    assert len(ended(tmp_path)) == 4
    assert never_two_at_once(ended(tmp_path))


LARGE = """
[[override]]
stage = "core"
compute = "cu*"
needs = { memory = "60 GB", time = "3 h" }
"""
AWAY = """
[worker.big]
platform = "linux-x86_64"
memory = "64 GB"
disk = "64 GB"
"""


@pytest.mark.slow
def test_urgent_jobs_for_a_machine_that_is_away_keep_no_other_idle(
    stack: ExitStack, tmp_path: Path
) -> None:
    """There are twelve of them, of which eight are submitted; and three less urgent ones."""
    text = (
        WORKS.replace('"1.0"', '"1.0"\nrelease = "2.13"')
        .replace('["cpu"]', '["cpu", "cu126", "cu129", "cu130", "cu132"]')
        .replace('["openblas"]', '["openblas", "mkl", "generic"]')
    )
    farm = farm_of(stack, tmp_path, text + LARGE, ("w1",), tables=AWAY)
    farm.start_master()
    farm.start_worker("w1")
    farm.submit("core:*")
    wait_until(lambda: [one["results"] for one in farm.builds()] == [0] * 3, PATIENCE, farm.log)
    assert all("/cpu-" in name for name in machines_of(farm))
    assert len(farm.buildsets()) == 8 + 3
