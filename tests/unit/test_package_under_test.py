"""What a smoke test knows of the package that it tests."""

from pathlib import Path

import pytest
from tests.support.helpers import SMALL, plan_of
from tests.support.made_wheel import make_wheel, spec_for

from torchyard.model.recipe import Stage
from torchyard.plan.select import EVERYTHING
from torchyard.smoke.package_under_test import read_package_under_test

COMMIT = "704754640b09a082545e24a58c2425d9a1c18427"


@pytest.mark.parametrize(
    ("source", "commit"),
    [
        (f'git = "https://a.example/b"\ncommit = "{COMMIT}"', COMMIT),
        ('git = "https://a.example/b"\nrev = "v1"', "none"),
        (f'archive = "a.tar.gz"\nsha256 = "{"5" * 64}"', ""),
    ],
)
def test_the_commit_is_that_of_the_spec(tmp_path: Path, source: str, commit: str) -> None:
    head, _, rest = SMALL.partition("[source]\n")
    text = f"{head}[source]\n{source}\n{rest[rest.index('[') :]}"
    wheel = make_wheel(tmp_path, spec=spec_for(plan_of(text), "linux-x86_64/cpu-mkl/cp312/wheel"))
    assert read_package_under_test(wheel).commit == commit


def test_a_package_without_a_spec_may_be_of_any_commit(tmp_path: Path) -> None:
    assert read_package_under_test(make_wheel(tmp_path)).commit == ""
    assert not any(read_package_under_test(make_wheel(tmp_path)).promises.values())


@pytest.mark.parametrize("compute", ["cu130", "rocm7.2"])
def test_a_minimal_tree_leaves_out_what_hipcc_fails_at(tmp_path: Path, compute: str) -> None:
    """FBGEMM and oneDNN, and with torch.distributed NCCL, or RCCL."""
    text = SMALL + '[toolchain]\n[build]\ntree = "minimal"\n'
    plan = plan_of(text, EVERYTHING, f'matrix.compute=["{compute}"]')
    spec = spec_for(plan, f"linux-x86_64/{compute}-mkl/cp312/wheel")
    (core,) = (task for task in spec.tasks if task.stage is Stage.CORE)
    env = core.table("env")
    assert (env["USE_FBGEMM"], env["USE_MKLDNN"]) == ("0", "0")
    promises = read_package_under_test(make_wheel(tmp_path, spec=spec)).promises
    assert "USE_NCCL" not in promises["SWITCHES"]
    assert "USE_OPENMP" in promises["SWITCHES"]


def test_the_spec_promises_blas_architectures_and_parts(tmp_path: Path) -> None:
    off = 'override=[{stage="core", env={USE_NCCL="0"}, archs=["8.0", "9.0+PTX"]}]'
    plan = plan_of(SMALL, EVERYTHING, off)
    spec = spec_for(plan, "linux-x86_64/cu130-mkl/cp312/wheel")
    assert read_package_under_test(make_wheel(tmp_path, spec=spec)).promises == {
        "BLAS": "mkl.*",
        "CODES": "sm_80 sm_90 compute_90",
        "SWITCHES": "USE_OPENMP USE_CUDNN USE_MAGMA",
    }
