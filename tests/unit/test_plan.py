"""Stages, sharing, settings and selection of plans."""

import subprocess
import sys

import msgspec
import pytest
from tests.support.helpers import EXAMPLE, EXTENSION, ROOT, SMALL, config_of, fingerprints, plan_of

from torchyard.errors import PlanError, SelectionError
from torchyard.model.identifier import Cell
from torchyard.model.recipe import Stage
from torchyard.plan.admission import TABLES, admit
from torchyard.plan.build import make_plan
from torchyard.plan.select import EVERYTHING, PlanSelection
from torchyard.plan.summary import estimate, exclusions, summarize


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
    assert (summary.compilations, summary.total) == (3, 8)
    assert summary.separate == 5 + 3  # wheels and zips


def test_metapackages_and_libraries_are_no_compilations() -> None:
    """Each of 343 packages was counted as one compilation, metapackages too."""
    summary = summarize(plan_of(EXAMPLE.read_text(encoding="utf-8")))
    wheels, zips, conda = (summary.packages[kind] for kind in ("wheel", "libtorch", "conda"))
    assert (summary.separate, summary.compilations) == (wheels + zips + conda, 30)
    assert (wheels, zips, conda, summary.saved) == (145, 12, 75, 202)


def test_inputs_follow_the_stages() -> None:
    plan = plan_of(SMALL)

    def inputs(stage: Stage, path: str) -> list[str]:
        return [plan.jobs[number].identifier for number in plan.find(stage, path).inputs]

    label = "torch-2.14.0"
    head = "linux-x86_64/cpu-mkl"
    assert inputs(Stage.CORE, head) == [f"source:{label}"]
    bindings = inputs(Stage.BINDINGS, f"{head}/cp311")
    assert bindings == [f"source:{label}", f"core:{label}/{head}"]
    wheel = f"{head}/cp311/wheel"
    assert inputs(Stage.PACKAGE, wheel) == [
        f"core:{label}/{head}",
        f"bindings:{label}/{head}/cp311",
    ]
    assert inputs(Stage.PACKAGE, f"{head}/any/libtorch") == [f"core:{label}/{head}"]
    assert inputs(Stage.CHECK, wheel) == inputs(Stage.SMOKE, wheel) == [f"package:{label}/{wheel}"]
    assert len(inputs(Stage.PUBLISH, "nightly")) == 3 * 8


def test_an_extension_has_no_core() -> None:
    plan = plan_of(EXTENSION)
    assert Stage.CORE not in plan.stage_counts()
    bindings = plan.find(Stage.BINDINGS, "linux-x86_64/cu130-torch2.13/cp312")
    assert [plan.jobs[number].stage for number in bindings.inputs] == [Stage.SOURCE]
    assert bindings.settings.values["cudnn"] == "9.20.0.48"
    newer = plan.find(Stage.BINDINGS, "linux-x86_64/cu130-torch2.14/cp312")
    assert newer.settings.values["cudnn"] == "9.24.0.43"


def test_facts_come_from_the_tables() -> None:
    plan = plan_of(EXAMPLE.read_text(encoding="utf-8"))
    core = plan.find(Stage.CORE, "linux-aarch64/cu130-nvpl").settings
    assert core.values["archs"] == ("8.0", "9.0", "10.0", "11.0", "12.0+PTX")
    assert core.values["cuda"] == "13.0"
    assert str(core.history["archs"][-1].origin) == "data/compute/cuda.toml"
    rocm = plan.find(Stage.CORE, "linux-x86_64/rocm7.14-mkl").settings.values
    assert rocm["rocm"] == "7.14"
    wheel = plan.find(Stage.PACKAGE, "linux-x86_64/xpu-mkl/cp312/wheel").settings.values
    assert wheel == {
        "format": "wheel",
        "platform_tag": "manylinux_2_28_x86_64",
        "oneapi": "2026.1",
        "triton": "3.8.0",
    }
    conda = plan.find(Stage.PACKAGE, "linux-x86_64/cu130-mkl/cp312/conda").settings.values
    assert conda == {"format": "conda", "subdir": "linux-64"}
    archive = plan.find(Stage.PACKAGE, "linux-x86_64/cu130-mkl/any/libtorch").settings.values
    assert archive == {"format": "zip"}


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
    assert settings.values["archs"] == ("9.0",)
    assert settings.values["cmake"] == {"A": "B"}
    assert str(settings.history["archs"][-1].origin) == "torchyard.toml:28"


def test_an_override_of_some_packages_leaves_the_others() -> None:
    more = '\n[[override]]\nstage = "package"\npython = "cp312"\nenv = { X = "1" }\n'
    before, after = fingerprints(plan_of(SMALL)), fingerprints(plan_of(SMALL + more))
    changed = {key for key in before if before[key] != after[key]}
    assert {path.split("/")[2] for _, path in changed} == {"cp312"}
    assert {stage for stage, _ in changed} == {"package", "check", "smoke"}


def test_an_empty_matrix_is_an_error() -> None:
    changes = ('matrix.compute=["rocm7.2"]', 'matrix.platform=["macos-arm64"]')
    with pytest.raises(PlanError, match="every cell is left out") as caught:
        plan_of(SMALL, EVERYTHING, *changes)
    assert "rocm7.2 is not made for macos-arm64" in (caught.value.diagnostics[0].hint or "")


def test_idle_rules_and_values_are_warned_of() -> None:
    more = '\n[[matrix.exclude]]\npython = "cp315"\nreason = "too new"\n'
    text = (SMALL + more).replace(
        'blas = ["mkl", "accelerate"]', 'blas = ["mkl", "accelerate", "nvpl"]'
    )
    text += '[[override]]\nstage = "core"\ncompute = "cu126"\narchs = ["9.0"]\n'
    text += '[subset.none]\npython = "cp310"\n'
    text += 'package = "wheel"\n[[matrix.include]]\npython = "cp312"\nreason = "again"\n'
    assert plan_of(text).warnings == (
        "the exclusion at torchyard.toml:38 has no effect: its cells are left out already",
        "the inclusion at torchyard.toml:48 has no effect: its cells are there already",
        "the override at torchyard.toml:41 applies to no cell",
        "the subset `none` has no cell (torchyard.toml:45)",
        "no cell has blas `nvpl`",
    )


def test_pins_that_are_unknown_are_an_error() -> None:
    text = SMALL.replace("2.14.0", "2.20.0")
    with pytest.raises(PlanError, match=r"no cu130 build of torch 2\.20, so the libraries"):
        plan_of(text)
    with pytest.raises(PlanError, match=r"the tables have no rocm6\.4 build of torch 2\.14"):
        plan_of(SMALL, EVERYTHING, 'matrix.compute=["rocm6.4"]')
    plan = plan_of(text.replace('version = "2.20.0"', 'version = "2.20.0"\nrelease = "2.13"', 1))
    settings = plan.find(Stage.CORE, "linux-x86_64/cu130-mkl").settings
    assert settings.values["cudnn"] == "9.20.0.48"


@pytest.mark.parametrize(
    ("select", "skip", "count"),
    [
        (["cu130"], [], 2),
        (["cp31*"], [], 5),
        (["*/linux-x86_64/*"], [], 5),
        (["cu130-mkl"], [], 2),
        (["cpu"], ["cu130"], 6),
        (["wheel"], ["cu130"], 4),
        (["torch-2.14.0/linux-x86_64/cpu-mkl/cp311/wheel"], [], 1),
        ([], ["libtorch", "macos-arm64"], 3),
    ],
)
def test_cells_are_selected_by_glob(select: list[str], skip: list[str], count: int) -> None:
    plan = plan_of(SMALL, PlanSelection(None, tuple(select), tuple(skip)))
    assert len(list(plan.cells())) == count
    assert Stage.PUBLISH not in plan.stage_counts(), "a part of the matrix is not published"


def test_jobs_are_selected_with_what_they_need() -> None:
    plan = plan_of(SMALL, PlanSelection(select=("core:*cu130*",)))
    assert plan.partial
    assert [job.stage for job in plan.jobs] == [Stage.SOURCE, Stage.CORE]
    without = plan_of(SMALL, PlanSelection(skip=("bindings:*",)))
    kinds = {job.scope[-1] for job in without.jobs if job.stage is Stage.PACKAGE}
    assert kinds == {"libtorch"}
    both = plan_of(SMALL, PlanSelection(select=("core:*", "package:macos-arm64")))
    assert {cell.platform for cell in both.cells()} == {"macos-arm64"}
    assert both.stage_counts()[Stage.CORE] == 3
    assert plan_of(SMALL, PlanSelection(select=("publish:*",))).stage_counts()[Stage.PUBLISH] == 1


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (PlanSelection(select=("cp321",)), "`cp321` matches no cell"),
        (PlanSelection(select=("*/cu999*/*",)), "matches no cell"),
        (PlanSelection(subset="prr"), "there is no subset `prr`"),
        (PlanSelection(select=("cpu",), skip=("cpu",)), "the selection is empty"),
        (PlanSelection(select=("core:nothing*",)), "`core:nothing*` matches no cell or job"),
        (PlanSelection(skip=("cor:*",)), "`cor:*` matches no cell or job"),
        (PlanSelection(select=("core:*", "cp399")), "`cp399` matches no cell or job"),
    ],
)
def test_a_selection_that_finds_nothing_is_an_error(selection: PlanSelection, message: str) -> None:
    with pytest.raises(SelectionError, match=message.replace("*", r"\*")):
        plan_of(SMALL, selection)


def test_subsets_may_name_cells() -> None:
    text = SMALL.replace('python = "cp312"\npackage = "wheel"', 'cells = "*/cpu-mkl/*/wheel"')
    plan = plan_of(text, PlanSelection("pr"))
    assert [cell.python for cell in plan.cells()] == ["cp311", "cp312"]


def test_a_subset_by_python_keeps_what_has_none() -> None:
    text = SMALL.replace('python = "cp312"\npackage = "wheel"', 'python = "cp312"')
    kinds = [cell.package for cell in plan_of(text, PlanSelection("pr")).cells()]
    assert kinds.count("libtorch") == 3


def test_static_zips_are_refused_by_a_sentence() -> None:
    text = SMALL.replace(
        '"libtorch"]', '"libtorch-static-with-deps", "libtorch-shared-without-deps"]'
    )
    kinds = {cell.package for cell in plan_of(text).cells()}
    assert kinds == {"wheel", "libtorch-shared-without-deps"}
    cell = Cell("linux-x86_64", "cpu", "mkl", "any", "libtorch-static-with-deps")
    absence = admit(cell, config_of(text)).absence
    assert absence is not None
    assert "BUILD_SHARED_LIBS=OFF" in absence.reason


def test_an_inclusion_reaches_beyond_the_matrix() -> None:
    more = (
        '\n[[matrix.include]]\nplatform = "linux-x86_64"\ncompute = "cu126"\nblas = "mkl"\n'
        'python = "cp311"\npackage = "wheel"\nreason = "one customer"\n'
    )
    plan = plan_of(SMALL + more)
    assert plan.get(Stage.PACKAGE, Cell.from_path("linux-x86_64/cu126-mkl/cp311/wheel"))
    assert not plan.get(Stage.PACKAGE, Cell.from_path("linux-x86_64/cu126-mkl/cp312/wheel"))


def test_an_inclusion_overrules_an_exclusion() -> None:
    more = '\n[[matrix.include]]\ncompute = "cu130"\npython = "cp311"\nreason = "after all"\n'
    plan = plan_of(SMALL + more)
    assert plan.get(Stage.PACKAGE, Cell.from_path("linux-x86_64/cu130-mkl/cp311/wheel"))


def test_the_estimate_adds_up() -> None:
    guess = estimate(plan_of(SMALL))
    assert guess.machine_time == 1800 + 7200 + 1800
    assert guess.longest_path == 7200
    assert guess.memory == 64 * 10**9
    assert guess.timed == 3


def test_finding_a_job_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(SelectionError, match="the plan has no job `core:torch"):
        plan_of(SMALL).find(Stage.CORE, "linux-x86_64/cu131-mkl")


def test_planning_touches_nothing() -> None:
    """No file, process or socket: import-linter sees imports, this sees what really happens."""
    code = (
        "import sys; from tests.support.helpers import SMALL, config_of\n"
        "from torchyard.plan.build import make_plan\n"
        "config, touched = config_of(SMALL), []\n"
        "sys.addaudithook(lambda event, args: touched.append(event))\n"
        "make_plan(config)\n"
        "seen = [e for e in touched if e.split('.')[0] in ('open', 'os', 'socket', 'subprocess')]\n"
        "sys.exit(f'touched: {seen}' if seen else 0)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_an_extension_leaves_out_what_torch_was_not_released_for() -> None:
    plan = plan_of(EXTENSION.replace('"torch2.13"', '"torch2.8"'))
    cells = {(cell.variant, cell.package) for cell in plan.cells() if cell.compute == "cu130"}
    assert cells == {("torch2.14", "wheel"), ("torch2.14", "conda"), ("torch2.8", "conda")}
    assert "the tables have no cu130 build of torch 2.8" in {
        rule.reason for rule in exclusions(plan)
    }


def test_a_commit_is_what_counts() -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    known = plan_of(SMALL, EVERYTHING, f"source.commit={commit}")
    mirror = plan_of(SMALL, EVERYTHING, f"source.commit={commit}", "source.git=file:///mirror")
    by_rev = plan_of(SMALL, EVERYTHING, f"source.rev={commit}")
    assert fingerprints(known) == fingerprints(mirror) == fingerprints(by_rev)
    assert fingerprints(known) != fingerprints(plan_of(SMALL))


def test_a_revision_of_a_stage_touches_only_that_stage() -> None:
    config = config_of(SMALL)
    known = config.project.recipe
    recipe = msgspec.structs.replace(known, revisions={**known.revisions, Stage.SMOKE: 2})
    project = msgspec.structs.replace(config.project, recipe=recipe)
    newer = make_plan(msgspec.structs.replace(config, project=project))
    before, after = fingerprints(plan_of(SMALL)), fingerprints(newer)
    assert {stage for stage, path in before if before[stage, path] != after[stage, path]} == {
        "smoke"
    }


def test_what_is_left_out_is_told_of_the_subset() -> None:
    plan = plan_of(SMALL, PlanSelection("pr"))
    assert [rule.reason for rule in exclusions(plan) if rule.origin != str(TABLES)] == []
    whole = exclusions(plan_of(SMALL))
    assert (whole[0].reason, whole[0].cells) == ("nobody wants it", 1)


def test_the_order_of_architectures_means_nothing() -> None:
    cells = []
    for archs in ('["10.0", "9.0"]', '["9.0", "10.0", "9.0"]'):
        text = SMALL.replace('env = { USE_MAGMA = "0" }', f"archs = {archs}")
        cells.append(plan_of(text).find(Stage.CORE, "linux-x86_64/cu130-mkl"))
    assert cells[0].fingerprint == cells[1].fingerprint
    assert cells[0].settings.values["archs"] == ("9.0", "10.0")


def test_an_inclusion_may_say_any() -> None:
    more = '\n[[matrix.include]]\npython = "any"\npackage = "conda-libtorch"\nreason = "C++"\n'
    kinds = [
        cell.python for cell in plan_of(SMALL + more).cells() if cell.package == "conda-libtorch"
    ]
    assert kinds == ["any"] * 3


def test_the_linear_algebra_plugin_is_left_out_for_cpus() -> None:
    text = SMALL.replace('"libtorch"]', '"libtorch", "conda-libtorch", "conda-linalg"]')
    plan = plan_of(text)
    made = {cell.compute for cell in plan.cells() if cell.package == "conda-linalg"}
    assert made == {"cu130"}
    why = "conda-linalg is made for GPUs only: the linear algebra of CPUs is in conda-libtorch"
    assert why in {rule.reason for rule in exclusions(plan)}
    with pytest.raises(PlanError, match="every cell is left out") as caught:
        plan_of(SMALL, EVERYTHING, 'matrix.compute=["cpu"]', 'matrix.package=["conda-linalg"]')
    assert why in str(caught.value.diagnostics[0].hint)
