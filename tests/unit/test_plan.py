"""Stages, sharing, settings and selection of plans."""

from pathlib import Path

import pytest
from tests.helpers import EXAMPLE, SMALL, fingerprints, plan_of

from torchyard.errors import PlanError, SelectionError
from torchyard.model.recipe import Stage
from torchyard.plan.estimate import estimate
from torchyard.plan.select import Selection
from torchyard.plan.summary import summarize

EXTENSION = """\
[project]
name = "torch-scatter"
version = "2.1.2"
recipe = "extension"
[source]
git = "https://example.org/torch-scatter"
rev = "2.1.2"
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu", "cu130"]
torch = ["torch2.13", "torch2.14"]
python = ["cp311", "cp312"]
package = ["wheel", "conda"]
"""


def test_stages_and_sharing() -> None:
    plan = plan_of(SMALL)
    counts = {stage.value: count for stage, count in plan.stage_counts().items()}
    # Linux: cpu with two Pythons, CUDA with one; macOS: cpu with two; a zip for each of the three.
    assert counts == {
        "source": 1,
        "core": 3,
        "bindings": 5,
        "package": 8,
        "check": 8,
        "smoke": 8,
        "publish": 1,
    }
    summary = summarize(plan)
    assert (summary.compilations, summary.total, summary.saved) == (3, 8, 5)


def test_inputs_follow_the_stages() -> None:
    plan = plan_of(SMALL)

    def inputs(stage: Stage, path: str) -> list[str]:
        return [plan.job(number).identifier for number in plan.find(stage, path).inputs]

    label = "torch-2.14.0"
    head = "linux-x86_64/cpu-mkl"
    assert inputs(Stage.CORE, head) == [f"source:{label}"]
    bindings = inputs(Stage.BINDINGS, f"{head}/cp311")
    assert bindings == [f"source:{label}", f"core:{label}/{head}"]
    wheel = f"{head}/cp311/wheel"
    assert inputs(Stage.PACKAGE, wheel) == [f"bindings:{label}/{head}/cp311"]
    assert inputs(Stage.PACKAGE, f"{head}/any/libtorch") == [f"core:{label}/{head}"]
    assert inputs(Stage.CHECK, wheel) == inputs(Stage.SMOKE, wheel) == [f"package:{label}/{wheel}"]
    assert len(inputs(Stage.PUBLISH, "nightly")) == 3 * 8


def test_an_extension_has_no_core() -> None:
    plan = plan_of(EXTENSION)
    assert Stage.CORE not in plan.stage_counts()
    bindings = plan.find(Stage.BINDINGS, "linux-x86_64/cu130-torch2.13/cp312")
    assert [plan.job(number).stage for number in bindings.inputs] == [Stage.SOURCE]
    assert bindings.settings.values["cudnn"] == "9.20.0.48"
    newer = plan.find(Stage.BINDINGS, "linux-x86_64/cu130-torch2.14/cp312")
    assert newer.settings.values["cudnn"] == "9.24.0.43"


def test_facts_come_from_the_tables() -> None:
    plan = plan_of(EXAMPLE.read_text(encoding="utf-8"))
    core = plan.find(Stage.CORE, "linux-aarch64/cu130-nvpl").settings
    assert core.values["archs"] == ["8.0", "9.0", "10.0", "11.0", "12.0+PTX"]
    assert core.values["cuda"] == "13.0"
    assert str(core.origins["archs"]) == "data/cuda.toml"
    rocm = plan.find(Stage.CORE, "linux-x86_64/rocm7.14-mkl").settings.values
    assert rocm["rocm"] == "7.14"
    package = plan.find(Stage.PACKAGE, "linux-x86_64/xpu-mkl/cp312/wheel").settings.values
    assert package["triton"] == "3.8.0"
    assert package["oneapi"] == "2026.1"
    assert package["platform_tag"] == "manylinux_2_28_x86_64"


def test_the_last_override_wins() -> None:
    plan = plan_of(EXAMPLE.read_text(encoding="utf-8"))
    new = plan.find(Stage.CORE, "linux-x86_64/cu130-mkl").settings.values["env"]
    old = plan.find(Stage.CORE, "linux-x86_64/cu126-mkl").settings.values["env"]
    assert isinstance(new, dict)
    assert isinstance(old, dict)
    assert "-compress-mode=size" in new["TORCH_NVCC_FLAGS"]
    assert "-compress-mode=size" not in old["TORCH_NVCC_FLAGS"]


def test_an_override_may_replace_architectures() -> None:
    text = SMALL.replace('env = { USE_MAGMA = "0" }', 'archs = ["9.0"]\ncmake = { A = "B" }')
    settings = plan_of(text).find(Stage.CORE, "linux-x86_64/cu130-mkl").settings
    assert settings.values["archs"] == ["9.0"]
    assert settings.values["cmake"] == {"A": "B"}
    assert str(settings.origins["archs"]) == "torchyard.toml:28"


def test_an_override_of_some_packages_leaves_the_others() -> None:
    more = '\n[[override]]\nstage = "package"\npython = "cp312"\nenv = { X = "1" }\n'
    before, after = fingerprints(plan_of(SMALL)), fingerprints(plan_of(SMALL + more))
    changed = {key for key in before if before[key] != after[key]}
    assert {path.split("/")[2] for _, path in changed} == {"cp312"}
    assert {stage for stage, _ in changed} == {"package", "check", "smoke"}


def test_an_empty_matrix_is_an_error() -> None:
    changes = ('matrix.compute=["rocm7.2"]', 'matrix.platform=["macos-arm64"]')
    with pytest.raises(PlanError, match="every cell is left out") as caught:
        plan_of(SMALL, Selection(), *changes)
    assert "rocm7.2 is not made for macos-arm64" in (caught.value.diagnostics[0].hint or "")


def test_idle_rules_and_values_are_warned_of() -> None:
    more = '\n[[matrix.exclude]]\npython = "cp315"\nreason = "too new"\n'
    text = (SMALL + more).replace(
        'blas = ["mkl", "accelerate"]', 'blas = ["mkl", "accelerate", "nvpl"]'
    )
    assert plan_of(text).warnings == [
        "the exclusion at torchyard.toml:38 leaves nothing out that is not left out already",
        "no cell has blas `nvpl`",
    ]


def test_pins_that_are_unknown_are_an_error() -> None:
    text = SMALL.replace("2.14.0", "2.20.0")
    with pytest.raises(PlanError, match=r"torch 2\.20 has no cuDNN and NCCL pins for cu130"):
        plan_of(text)
    plan = plan_of(text.replace('version = "2.20.0"', 'version = "2.20.0"\nrelease = "2.13"', 1))
    settings = plan.find(Stage.CORE, "linux-x86_64/cu130-mkl").settings
    assert settings.values["cudnn"] == "9.20.0.48"


@pytest.mark.parametrize(
    ("select", "skip", "count"),
    [
        (["cu130"], [], 2),
        (["cp31*"], [], 5),
        (["*/linux-x86_64/*"], [], 5),
        (["wheel"], ["cu130"], 4),
        (["torch-2.14.0/linux-x86_64/cpu-mkl/cp311/wheel"], [], 1),
        ([], ["libtorch", "macos-arm64"], 3),
    ],
)
def test_cells_are_selected_by_glob(select: list[str], skip: list[str], count: int) -> None:
    plan = plan_of(SMALL, Selection(None, tuple(select), tuple(skip)))
    assert len(list(plan.cells())) == count
    assert Stage.PUBLISH not in plan.stage_counts(), "a part of the matrix is not published"


def test_jobs_are_selected_with_what_they_need() -> None:
    plan = plan_of(SMALL, Selection(select=("core:*cu130*",)))
    assert [job.stage for job in plan.jobs()] == [Stage.SOURCE, Stage.CORE]
    without = plan_of(SMALL, Selection(skip=("bindings:*",)))
    kinds = {job.scope[-1] for job in without.jobs() if job.stage is Stage.PACKAGE}
    assert kinds == {"libtorch"}


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(select=("cp321",)), "`cp321` matches no cell"),
        (Selection(select=("*/cu999*/*",)), "matches no cell"),
        (Selection(subset="prr"), "there is no subset `prr`"),
        (Selection(select=("cpu",), skip=("cpu",)), "the selection is empty"),
        (Selection(select=("core:nothing*",)), "no job matches core:nothing"),
    ],
)
def test_a_selection_that_finds_nothing_is_an_error(selection: Selection, message: str) -> None:
    with pytest.raises(SelectionError, match=message.replace("*", r"\*")):
        plan_of(SMALL, selection)


def test_subsets_may_name_cells() -> None:
    text = SMALL.replace('python = "cp312"\npackage = "wheel"', 'cells = "*/cpu-mkl/*/wheel"')
    plan = plan_of(text, Selection("pr"))
    assert [cell.python for cell in plan.cells()] == ["cp311", "cp312"]


def test_a_subset_by_python_keeps_what_has_none() -> None:
    text = SMALL.replace('python = "cp312"\npackage = "wheel"', 'python = "cp312"')
    kinds = [cell.package for cell in plan_of(text, Selection("pr")).cells()]
    assert kinds.count("libtorch") == 3


def test_an_inclusion_reaches_beyond_the_matrix() -> None:
    more = (
        '\n[[matrix.include]]\nplatform = "linux-x86_64"\ncompute = "cu126"\nblas = "mkl"\n'
        'python = "cp311"\npackage = "wheel"\nreason = "one customer"\n'
    )
    plan = plan_of(SMALL + more)
    assert plan.get(Stage.PACKAGE, "linux-x86_64/cu126-mkl/cp311/wheel")
    assert not plan.get(Stage.PACKAGE, "linux-x86_64/cu126-mkl/cp312/wheel")


def test_an_inclusion_overrules_an_exclusion() -> None:
    more = '\n[[matrix.include]]\ncompute = "cu130"\npython = "cp311"\nreason = "after all"\n'
    plan = plan_of(SMALL + more)
    assert plan.get(Stage.PACKAGE, "linux-x86_64/cu130-mkl/cp311/wheel")


def test_the_estimate_adds_up() -> None:
    guess = estimate(plan_of(SMALL))
    assert guess.machine_time == 1800 + 7200 + 1800
    assert guess.longest_path == 7200
    assert guess.memory == 64 * 10**9
    assert guess.timed == 3


def test_finding_a_job_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(SelectionError) as caught:
        plan_of(SMALL).find(Stage.CORE, "linux-x86_64/cu131-mkl")
    hint = caught.value.diagnostics[0].hint
    assert hint == "did you mean `core:torch-2.14.0/linux-x86_64/cu130-mkl`?"


def test_no_file_is_touched_by_planning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan_of(SMALL)
    assert not list(tmp_path.iterdir())
