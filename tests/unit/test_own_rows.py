"""Rows of tables in torchyard.toml: added and changed, with errors and origins of their own."""

import pytest
from tests.support.helpers import EXTENSION, SMALL, config_of, fingerprints, plan_of

from torchyard.config.tables import load_tables
from torchyard.errors import ConfigError
from torchyard.model.identifier import parse
from torchyard.model.recipe import Stage
from torchyard.package.conda.metadata import CondaBuild, CondaKind, describe
from torchyard.plan.explain import explain, ingredients
from torchyard.plan.graph import Plan
from torchyard.plan.job_specs import make_task
from torchyard.plan.summary import own_rows

NEW_RELEASE = """
[tables.releases."2.16"]
libraries.cu130 = { cudnn = "9.30.0.1", nccl = "2.31.0" }
triton.cu130 = "3.9.0"
"""
NEW_PYTHON = """
[tables.pythons.cp316]
version = "3.16"
"""
NEW_CUDA = """
[tables.compute.cu133]
version = "13.3"
gcc_max = "16"
clang_max = "22"
driver_family = "580"
driver_min_linux = "600.10"
archs.linux-x86_64 = ["7.5", "9.0a", "12.0+PTX"]

[tables.releases."2.14".libraries]
cu133 = { cudnn = "9.30.0.1" }
"""
CUDA_CORE = "linux-x86_64/cu130-mkl"


def settings_of(plan: Plan, stage: Stage, path: str) -> dict[str, tuple[str, str]]:
    """Return what a job's fingerprint covers: values and origins, by name."""
    found = ingredients(plan, plan.find(stage, path))
    return {item.name: (item.value, str(item.origin)) for item in found}


def line_of(text: str, part: str) -> str:
    return f"torchyard.toml:{text[: text.index(part)].count(chr(10)) + 1}"


def changed(text: str, instead: str) -> set[tuple[str, str]]:
    """Return the jobs that another text plans differently, or does not plan."""
    before, after = fingerprints(plan_of(text)), fingerprints(plan_of(instead))
    return {key for key in before if before[key] != after.get(key)}


def test_a_new_release_gives_its_pins() -> None:
    text = SMALL.replace('"2.14.0"', '"2.16.0"') + NEW_RELEASE
    plan = plan_of(text)
    where = line_of(text, "libraries.cu130")
    core = settings_of(plan, Stage.CORE, CUDA_CORE)
    assert core["cudnn"] == ("9.30.0.1", where)
    wheel = settings_of(plan, Stage.PACKAGE, f"{CUDA_CORE}/cp312/wheel")
    assert wheel["nccl"] == ("2.31.0", where)
    assert wheel["triton"] == ("3.9.0", line_of(text, "triton.cu130"))


def test_an_extension_is_built_with_a_new_release() -> None:
    text = EXTENSION.replace('"torch2.13"', '"torch2.16"') + NEW_RELEASE
    cells = {cell.variant for cell in plan_of(text).cells() if cell.compute == "cu130"}
    assert cells == {"torch2.14", "torch2.16"}


def test_a_new_python_makes_packages_and_changes_no_other() -> None:
    text = SMALL.replace('"cp312"]', '"cp312", "cp316"]') + NEW_PYTHON
    assert not changed(SMALL, text)
    assert "cp316" in {cell.python for cell in plan_of(text).cells()}


def test_conda_packages_are_for_a_new_python() -> None:
    """Jobs, which have no file, know a Python by its tag."""
    build = CondaBuild(
        name="torch",
        version="2.14.0",
        compute="cpu",
        blas="mkl",
        subdir="linux-64",
        build_hash="bbbbbbb",
        python="cp316t",
    )
    described = describe(CondaKind.PACKAGE, build)
    assert described.build.startswith("cpu_mkl_py316t_")
    assert {"python >=3.16,<3.17.0a0", "python_abi 3.16.* *_cp316t"} <= set(described.depends)


def test_a_new_cuda_version_is_planned_as_a_shipped_one() -> None:
    text = SMALL.replace('"cu130"]', '"cu130", "cu133"]') + NEW_CUDA
    assert not changed(SMALL, text)
    plan = plan_of(text)
    core = settings_of(plan, Stage.CORE, "linux-x86_64/cu133-mkl")
    assert core["cuda"] == ("13.3", line_of(text, 'version = "13.3"'))
    assert core["archs"] == ("7.5 9.0a 12.0+PTX", line_of(text, "archs.linux"))
    assert core["cudnn"] == ("9.30.0.1", line_of(text, "cu133 = {"))
    job = plan.find(Stage.CORE, "linux-x86_64/cu133-mkl")
    assert make_task(plan, job).compilers == {"gcc": "16", "clang": "22"}
    assert make_task(plan, plan.find(Stage.CORE, CUDA_CORE)).compilers == {}


def test_a_changed_pin_touches_what_has_it() -> None:
    pin = '[tables.releases."2.14".libraries.cu130]\nnccl = "2.31.0"\n'
    text = SMALL + pin
    core = settings_of(plan_of(text), Stage.CORE, CUDA_CORE)
    assert core["nccl"] == ("2.31.0", line_of(text, "nccl ="))
    assert core["cudnn"] == ("9.24.0.43", line_of(text, 'version = "2.14.0"'))
    assert core["cuda"] == ("13.0", "data/compute/cuda.toml")
    touched = changed(SMALL, text)
    assert ("core", CUDA_CORE) in touched
    assert not {path for _, path in touched if "/cu130-mkl" not in path}


def test_which_compilers_a_toolkit_takes_is_in_no_fingerprint() -> None:
    text = SMALL + '[tables.compute.cu130]\ngcc_max = "16"\n'
    assert not changed(SMALL, text)
    plan = plan_of(text)
    task = make_task(plan, plan.find(Stage.CORE, CUDA_CORE))
    assert task.compilers == {"gcc": "16", "clang": "20"}
    assert task.is_true


def test_a_tree_can_be_changed() -> None:
    build = '[toolchain]\n[build]\ntree = "minimal"\n'
    text = SMALL + build + '[tables.trees.minimal.env]\nUSE_MKLDNN = "1"\n'
    core = settings_of(plan_of(text), Stage.CORE, CUDA_CORE)
    assert core["env.USE_MKLDNN"] == ("1", line_of(text, "USE_MKLDNN"))
    assert core["env.USE_KINETO"] == ("0", "data/trees.toml: minimal")


def test_own_rows_are_shown_with_their_lines() -> None:
    text = SMALL.replace('"cp312"]', '"cp312", "cp316"]') + NEW_PYTHON + NEW_CUDA
    where = line_of(text, "[tables.pythons.cp316]")
    assert [(row.table, row.name) for row in own_rows(config_of(text))] == [
        ("releases", "2.14"),
        ("pythons", "cp316"),
        ("compute", "cu133"),
    ]
    story = explain(plan_of(text), parse(f"torch-2.14.0/{CUDA_CORE}/cp316/wheel"))
    rows = {item.name: str(item.origin) for item in story.admitted_by}
    assert rows["row of pythons"] == where
    assert rows["row of releases"] == line_of(text, '[tables.releases."2.14".libraries]')
    assert "row of compute" not in rows


def test_a_file_leaves_the_shipped_tables_alone() -> None:
    config_of(SMALL + NEW_PYTHON)
    assert "cp316" not in load_tables().pythons
    assert config_of(SMALL).tables is load_tables()


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("[tables.pythons.cp316]\n", 1, "[tables.pythons.cp316] lacks the required key `version`"),
        (NEW_PYTHON.replace("version", "versions"), 3, "unknown key `versions`"),
        (NEW_PYTHON.replace('"3.16"', "3.16"), 3, "must be a string, not a number"),
        (NEW_PYTHON.replace('"3.16"', '"3.15"'), 2, "`cp316` is not the tag of this Python"),
        (NEW_PYTHON.replace("cp316", "any"), 2, "`any` is not the tag of this Python"),
        (NEW_PYTHON.replace("pythons", "python"), 2, "unknown key `python` in [tables]"),
        (NEW_RELEASE.replace("2.16", "2.16.1"), 2, "`2.16.1` is not a torch release"),
        (NEW_RELEASE.replace("cu130 = {", "cu139 = {"), 3, "unknown compute platform `cu139`"),
        (NEW_CUDA.replace("cu133]", "metal4]"), 2, "no compute platform has a version called"),
        (NEW_CUDA.replace('"13.3"', '"13.4"'), 2, "cu133 has the version of cu134"),
        (NEW_CUDA.replace('"16"', '"16.x"'), 2, "cu133 accepts gcc up to `16.x`"),
        (NEW_CUDA.replace("linux-x86_64", "linux-x86"), 2, "names the unknown platform"),
        (NEW_CUDA.replace('"7.5"', '"sm_75"'), 2, "`sm_75`, which is not an architecture"),
        ("[tables.compute.cu130.archs]\nlinux-x86_64 = []\n", 1, "has no architectures"),
    ],
)
def test_an_invalid_row_is_refused_with_its_line(text: str, line: int, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(SMALL + text)
    found = next(item for item in caught.value.diagnostics if what in item.what)
    assert found.span is not None
    assert (found.span.file, found.span.line) == ("torchyard.toml", SMALL.count("\n") + line)
