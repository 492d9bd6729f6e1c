"""A wheel of a stable ABI serves several cells of a matrix: the oldest of them builds it."""

from itertools import product
from pathlib import Path

import msgspec
import pytest
from tests.support.helpers import Command, config_of

from torchyard.errors import ConfigError
from torchyard.model.lock import BuildLock
from torchyard.model.recipe import Stage
from torchyard.plan.admission import admit, serving_cell
from torchyard.plan.build import make_plan
from torchyard.plan.graph import Plan
from torchyard.plan.job_specs import make_job_spec
from torchyard.plan.select import EVERYTHING

FILE = """\
[project]
name = "demo"
version = "1.0"
recipe = "extension"

[source]
path = "."

[toolchain]

[build]
abi = "{abi}"

[matrix]
platform = ["linux-x86_64", "linux-aarch64"]
compute = ["cpu", "cu130"]
torch = ["torch2.12", "torch2.13"]
python = ["cp313", "cp311", "cp312", "cp313t"]
package = ["wheel"]
"""
HEADS = list(product(("linux-x86_64", "linux-aarch64"), ("cpu", "cu130")))
NEW = "linux-x86_64/cpu-torch2.13/cp313"
TORCH = "torch-2.13.0+cpu-cp313-cp313-manylinux_2_28_x86_64.whl"
LOCK = BuildLock(environments={NEW: (TORCH,)}, files={TORCH: "5" * 64})


def plan_of(abi: str, more: str = "") -> Plan:
    config = config_of(FILE.replace("{abi}", abi) + more)
    return make_plan(msgspec.structs.replace(config, lock=LOCK), EVERYTHING)


def built(plan: Plan) -> list[str]:
    return [job.path for job in plan.jobs if job.stage is Stage.BINDINGS]


@pytest.mark.parametrize(
    ("abi", "pairs"),
    [
        ("full", list(product(("2.12", "2.13"), ("cp313", "cp311", "cp312", "cp313t")))),
        ("abi3", list(product(("2.12", "2.13"), ("cp311", "cp313t")))),
        ("stable", list(product(("2.12",), ("cp313", "cp311", "cp312", "cp313t")))),
        ("both", [("2.12", "cp311"), ("2.12", "cp313t")]),
    ],
)
def test_the_oldest_builds(abi: str, pairs: list[tuple[str, str]]) -> None:
    plan = plan_of(abi)
    assert built(plan) == [
        f"{platform}/{compute}-torch{torch}/{python}"
        for (platform, compute), (torch, python) in product(HEADS, pairs)
    ]
    assert len(list(plan.cells())) + len(plan.absent()) == 32


@pytest.mark.parametrize("abi", ["full", "abi3", "stable", "both"])
def test_every_cell_is_built_or_served_by_one_that_is_not_newer(abi: str) -> None:
    plan = plan_of(abi)
    cells = set(plan.cells())
    for absent in plan.absent():
        server = serving_cell(absent.cell, plan.config)
        assert server in cells
        assert server.path == absent.absence.server
        assert (server.platform, server.compute) == (absent.cell.platform, absent.cell.compute)
        assert server.variant <= absent.cell.variant
        assert server.python <= absent.cell.python
        assert admit(server, plan.config).absence is None


def test_values_that_are_served_are_used() -> None:
    assert plan_of("both").warnings == ()


def test_what_the_oldest_does_not_serve_is_built() -> None:
    """cp311 is left out for the oldest torch, so its wheel is that of the next one."""
    excluded = '\n[[matrix.exclude]]\ntorch = "torch2.12"\npython = "cp311"\nreason = "old"\n'
    paths = [
        path for path in built(plan_of("both", excluded)) if path.startswith("linux-x86_64/cpu-")
    ]
    assert sorted(path.partition("/")[2] for path in paths) == [
        "cpu-torch2.12/cp312",
        "cpu-torch2.12/cp313t",
        "cpu-torch2.13/cp311",
    ]


def test_smoke_at_the_oldest_and_the_newest() -> None:
    plan = plan_of("both")
    jobs = [job for job in plan.jobs if job.stage is Stage.SMOKE]
    tried = [job.path for job in jobs if "linux-x86_64/cpu" in job.path and "t/" not in job.path]
    assert tried == [
        "linux-x86_64/cpu-torch2.12/cp311/wheel",
        "linux-x86_64/cpu-torch2.13/cp313/wheel",
    ]
    newest = plan.find(Stage.SMOKE, tried[1])
    (package,) = (plan.jobs[number] for number in newest.inputs)
    assert package.path == tried[0]
    spec = make_job_spec(plan, newest)
    assert spec.task.words("requires") == [f"torch==2.13.0+cpu --hash=sha256:{'5' * 64}"]
    assert spec.task.facts["python"] == "cp313"
    free = [job.path for job in jobs if job.path.startswith("linux-x86_64/cpu-torch2.13/cp313t")]
    assert free, "a free-threaded Python has a wheel of its own, for both torches"


def test_a_file_of_the_full_abi_is_what_it_was() -> None:
    text = FILE.replace('[build]\nabi = "{abi}"\n', "")
    plain = make_plan(msgspec.structs.replace(config_of(text), lock=LOCK), EVERYTHING)
    assert plain.fingerprints == plan_of("full").fingerprints


def test_the_label_names_no_torch_that_is_one_of_several() -> None:
    def label(abi: str) -> str:
        (job, *_) = (job for job in plan_of(abi).jobs if job.stage is Stage.PACKAGE)
        return str(job.settings.values["label"])

    labels = [label(abi) for abi in ("full", "abi3", "stable", "both")]
    assert labels == ["pt212cpu", "pt212cpu", "cpu", "cpu"]


def test_the_plan_says_so(torchyard: Command, tmp_path: Path) -> None:
    file = tmp_path / "torchyard.toml"
    file.write_text(FILE.replace("{abi}", "both"), encoding="utf-8")
    done = torchyard("plan", "-f", file)
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    assert "served: 32 cells served by 8 builds, as the file says abi = both" in text
    assert "served by linux-x86_64/cpu-torch2.12/cp311/wheel" in text
    cell = "demo-1.0/linux-x86_64/cpu-torch2.13/cp312/wheel"
    explained = torchyard("explain", "-f", file, cell)
    assert "served by linux-x86_64/cpu-torch2.12/cp311/wheel" in " ".join(
        (explained.out + explained.err).split()
    )


def test_only_extensions_have_abi_classes() -> None:
    text = FILE.replace('recipe = "extension"', "").replace("torch =", "blas =")
    text = text.replace("torch2.12", "mkl").replace("torch2.13", "openblas")
    with pytest.raises(ConfigError, match="does not support ABI class both"):
        config_of(text.replace("{abi}", "both"))
