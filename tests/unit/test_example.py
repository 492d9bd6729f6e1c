"""The example is upstream's matrix, to the package."""

from collections import Counter

import pytest
from tests.support.helpers import EXAMPLE, ROOT, plan_of

from torchyard.config.document import Document
from torchyard.config.load import config_of
from torchyard.model.lock import BuildLock
from torchyard.model.recipe import Stage
from torchyard.model.tables import Release
from torchyard.plan.build import make_plan
from torchyard.plan.diff import diff_plans
from torchyard.plan.graph import Plan
from torchyard.plan.select import PlanSelection
from torchyard.plan.summary import exclusions


@pytest.fixture(scope="module")
def text() -> str:
    return EXAMPLE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def plan(text: str) -> Plan:
    return plan_of(text)


def test_wheels(plan: Plan) -> None:
    assert Counter(cell.platform for cell in plan.cells() if cell.package == "wheel") == {
        "linux-x86_64": 56,
        "linux-aarch64": 32,
        "linux-s390x": 6,
        "windows-x86_64": 40,
        "windows-arm64": 3,
        "macos-arm64": 8,
    }


def test_libtorch_zips(plan: Plan) -> None:
    assert Counter(cell.platform for cell in plan.cells() if cell.package == "libtorch") == {
        "linux-x86_64": 6,
        "windows-x86_64": 4,
        "windows-arm64": 1,
        "macos-arm64": 1,
    }


def test_conda_outputs(plan: Plan) -> None:
    """Fifteen configurations of the feedstock, each with five Pythons."""
    counts = Counter(cell.package for cell in plan.cells())
    conda = {kind: count for kind, count in counts.items() if kind.startswith("conda")}
    assert conda == {
        "conda": 75,
        "conda-tests": 75,
        "conda-libtorch": 15,
        "conda-linalg": 6,
        "conda-meta": 15,
    }


def test_nothing_in_the_file_is_idle(plan: Plan) -> None:
    assert plan.warnings == ()


def test_every_exclusion_has_a_reason(plan: Plan) -> None:
    assert all(rule.reason for rule in exclusions(plan))


@pytest.mark.parametrize(
    ("subset", "packages", "publishes"),
    [("pr", 2, []), ("nightly", 157, ["nightly"]), ("release", 343, ["test"]), ("conda", 186, [])],
)
def test_subsets(text: str, subset: str, packages: int, publishes: list[str]) -> None:
    part = plan_of(text, PlanSelection(subset))
    assert len(list(part.cells())) == packages
    assert [job.path for job in part.jobs if job.stage == "publish"] == publishes


def test_without_python_3_10_no_libtorch_zip_is_lost(text: str, plan: Plan) -> None:
    """pytorch/pytorch#198233: upstream cuts the zips from the 3.10 wheel."""
    smaller = plan_of(
        text.replace(
            'python = ["cp310", "cp311", "cp312", "cp313", "cp314", "cp314t"',
            'python = ["cp311", "cp312", "cp313", "cp314", "cp314t"',
        )
    )
    diff = diff_plans(plan, smaller)
    assert len(diff.vanished) == 18
    assert {tuple(change.cell.split("/")[3:]) for change in diff.vanished} == {("cp310", "wheel")}
    assert not diff.rebuilt
    assert not diff.appeared


def test_one_core_serves_wheels_zips_and_conda(plan: Plan) -> None:
    core = plan.find(Stage.CORE, "linux-x86_64/cu130-mkl")
    assert plan.packages_of(core) == 8 + 1 + 5 + 5 + 1 + 1 + 1


EXTENSIONS = sorted(path.name for path in (ROOT / "examples/extensions").iterdir())


@pytest.mark.parametrize("name", EXTENSIONS)
def test_examples_of_extensions(name: str) -> None:
    """They are planned with their lock; the row for torch 2.15 is a part of it."""
    file = f"examples/extensions/{name}/torchyard.toml"
    text = (ROOT / file).read_text(encoding="utf-8")
    lock = BuildLock(releases={"2.15": Release(libraries={"cu132": {}})})
    plan = make_plan(config_of(str(ROOT / file), Document(file, text), lock=lock))
    assert plan.config.project.name == name
    assert {cell.python for cell in plan.cells()} == {"cp311", "cp312"}
    assert "cu132" in {cell.compute for cell in plan.cells()}
    assert f"]({'../../'}{file})" in (ROOT / "docs/guides/build-an-extension.md").read_text("utf-8")
