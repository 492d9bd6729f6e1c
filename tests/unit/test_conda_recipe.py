"""A conda recipe is planned: its outputs in all variants are cells, built after what they need."""

import json
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.helpers import ROOT, Command

from torchyard.config.load import load_config
from torchyard.errors import ConfigError, TorchyardError
from torchyard.model.recipe import Stage
from torchyard.model.step import Step
from torchyard.plan.build import make_plan
from torchyard.plan.graph import Plan
from torchyard.plan.job_specs import make_job_spec
from torchyard.plan.select import EVERYTHING, PlanSelection
from torchyard.recipes import steps_of

pytest.importorskip("rattler_build")

RECIPES = ROOT / "tests/projects/conda-recipes"
FILE = """\
[project]
name = "{name}"
version = "{version}"
recipe = "conda"
[source]
path = "."
[matrix]
platform = ["linux-x86_64"]
"""
TORCH = """\
schema_version: 1
context:
  version: "2.14.0"
recipe:
  name: libtorch
  version: ${{ version }}
build:
  number: 3
outputs:
  - staging:
      name: libtorch-build
    requirements:
      build: ["${{ compiler('c') }}"]
      host:
        - ${{ blas_impl }}
        - if: cuda_compiler_version != "None"
          then: cuda-cudart-dev
    build:
      script: build.sh
  - package:
      name: libtorch
    inherit: libtorch-build
    build:
      string: ${{ cuda }}_${{ blas_impl }}_h${{ hash }}_${{ number }}
      variant:
        use_keys: [cuda_compiler_version]
  - package:
      name: pytorch
    build:
      skip: cuda_compiler_version != "None" and match(python, ">=3.13")
      string: ${{ cuda }}_${{ blas_impl }}_py${{ python | version_to_buildstring }}_h${{ hash }}_3
      script: build.sh
    requirements:
      host: ["python", "${{ pin_subpackage('libtorch', exact=True) }}"]
      run: ["python", "${{ pin_subpackage('libtorch', exact=True) }}"]
  - package:
      name: pytorch-${{ "cpu" if cuda_compiler_version == "None" else "gpu" }}
    build:
      string: ${{ cuda }}_${{ blas_impl }}_h${{ hash }}_3
    requirements:
      run: ["${{ pin_subpackage('libtorch', exact=True) }}", pytorch]
""".replace("${{ cuda }}", "${{ 'cpu' if cuda_compiler_version == 'None' else 'cuda' }}").replace(
    "${{ number }}", "3"
)
SUPPORT = """\
blas_impl: [{blas}]
c_compiler: [gcc]
c_compiler_version: ['{gcc}']
channel_sources: [conda-forge]
channel_targets: [conda-forge main]
cuda_compiler_version: ['{cuda}']
pin_run_as_build:
  python: {{min_pin: x.x, max_pin: x.x}}
python: ['{python}']
target_platform: [linux-64]
zip_keys: [[c_compiler_version, cuda_compiler_version]]
"""


def plan_of(folder: Path, text: str = "", selection: PlanSelection = EVERYTHING) -> Plan:
    """Plan the recipe in a directory by a file, or by one with no more than needed."""
    file = folder / "torchyard.toml"
    if text or not file.exists():
        file.write_text(text or FILE.format(name="x", version="1"), encoding="utf-8")
    return make_plan(load_config(str(file)), selection)


@pytest.fixture
def fastsum(tmp_path: Path) -> Path:
    return sample("fastsum", "0.3.1", tmp_path)


@pytest.fixture
def gauge(tmp_path: Path) -> Path:
    return sample("gauge", "2.0.1", tmp_path)


def sample(name: str, version: str, to: Path) -> Path:
    folder = to / name
    shutil.copytree(RECIPES / name, folder)
    (folder / "torchyard.toml").write_text(FILE.format(name=name, version=version))
    return folder


def inputs(plan: Plan, job: str) -> set[str]:
    """The scopes of the builds that a job needs, by its stage and scope."""
    (found,) = (made for made in plan.jobs if f"{made.stage}:{made.path}" == job)
    others = (plan.jobs[number] for number in found.inputs)
    return {f"{other.stage}:{other.path}".rpartition("/")[2] for other in others}


def test_each_output_of_each_variant_is_a_cell(fastsum: Path) -> None:
    """The recipe skips 3.10; other keys than those that differ name no cell."""
    plan = plan_of(fastsum)
    assert {(cell.variant, cell.python) for cell in plan.cells()} == {
        (blas, python) for blas in ("openblas", "generic") for python in ("cp311", "cp312")
    }
    builds = {output.variant["python"] for output in plan.config.recipe_outputs}
    assert builds == {"3.11.* *_cpython", "3.12.* *_cpython"}


def test_a_build_has_the_packages_that_it_needs(gauge: Path) -> None:
    """One core has all outputs without a Python; tests also get what packages require."""
    plan = plan_of(gauge)
    head = "linux-x86_64/cpu-default"
    assert inputs(plan, f"core:{head}") == {"source:"}
    assert inputs(plan, f"bindings:{head}/cp312") == {"source:", "cpu-default"}
    assert inputs(plan, f"package:{head}/cp312/gauge") == {"cp312"}
    assert inputs(plan, f"smoke:{head}/cp312/gauge") == {"cpu-default", "cp312", "gauge"}
    assert inputs(plan, f"smoke:{head}/any/gauge-all") == {
        *("cpu-default", "cp311", "cp312", "gauge-all"),
    }


def test_a_downloaded_source_needs_the_network(gauge: Path) -> None:
    """Also that of a staging build; channels and sources that are directories need none."""
    file, recipe = gauge / "torchyard.toml", gauge / "recipe.yaml"
    file.write_text(file.read_text() + '[conda]\nchannels = ["./channel"]\n')
    plan = plan_of(gauge)
    assert not any(step.network for step in steps_of_builds(plan))
    url = f"url: https://example.org/x.tar.gz\n  sha256: {'0' * 64}"
    recipe.write_text(recipe.read_text().replace("path: src", url))
    plan = plan_of(gauge)
    assert all(output.fetches for output in plan.config.recipe_outputs)
    assert all(step.network for step in steps_of_builds(plan))


def steps_of_builds(plan: Plan) -> list[Step]:
    jobs = [job for job in plan.jobs if job.stage in (Stage.CORE, Stage.BINDINGS)]
    return [step for job in jobs for step in steps_of(make_job_spec(plan, job))]


def test_files_of_the_recipe_are_inputs(gauge: Path) -> None:
    before = plan_of(gauge)
    with (gauge / "src/module.c").open("a") as file:
        file.write("\n")
    after = plan_of(gauge)
    changed = [a.fingerprint != b.fingerprint for a, b in zip(before.jobs, after.jobs, strict=True)]
    assert all(changed)


def test_rules_select_outputs(fastsum: Path) -> None:
    text = (fastsum / "torchyard.toml").read_text()
    text += '[[matrix.exclude]]\nvariant = "gen*"\npython = "cp312"\nreason = "few use it"\n'
    text += '[subset.pr]\npackage = "fastsum"\nvariant = "openblas"\n'
    assert len([*plan_of(fastsum, text).cells()]) == 3
    assert len([*plan_of(fastsum, text, PlanSelection("pr")).cells()]) == 2


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('version = "0.3.1"', 'version = "0.3.0"', "the recipe has version 0.3.1"),
        ("[matrix]", '[matrix]\npython = ["cp312"]', "reads the values of `python`"),
        ('recipe = "conda"', 'recipe = "conda"\nbuild_number = 2', "what `build_number` would"),
        ('recipe = "conda"', 'recipe = "conda"\nnightly = "20261114"', "what `nightly` would"),
        ("[matrix]", '[toolchain]\ncompiler = "gcc"\n[matrix]', "says itself with what"),
        ('path = "."', 'git = "https://example.org/x"\nrev = "v1"', "has no directory"),
        ('path = "."', 'path = "src"', "there is no `recipe.yaml`"),
        ('["linux-x86_64"]', '["no-platform"]', "no output for no-platform"),
        (
            "[matrix]",
            '[[matrix.exclude]]\nvariant = "mkl"\nreason = "x"\n[matrix]',
            "no known variant",
        ),
    ],
)
def test_errors_say_what_a_recipe_has(fastsum: Path, old: str, new: str, what: str) -> None:
    text = (fastsum / "torchyard.toml").read_text().replace(old, new, 1)
    with pytest.raises(TorchyardError, match=what):
        plan_of(fastsum, text)


def test_an_unreadable_recipe_is_an_error_of_the_file(fastsum: Path) -> None:
    (fastsum / "recipe.yaml").write_text("package: [")
    with pytest.raises(ConfigError, match=r"`recipe\.yaml` can't be read"):
        plan_of(fastsum)


def feedstock(folder: Path) -> Mapping[str, str]:
    """Write a feedstock of PyTorch's shape; return its sets of variants by the build strings."""
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe/recipe.yaml").write_text(TORCH)
    (folder / ".ci_support").mkdir()
    sets = {}
    for blas in ("mkl", "libopenblas"):
        for cuda, gcc in (("None", "14"), ("13.0", "13")):
            for python in ("3.12.* *_cpython", "3.13.* *_cp313"):
                name = f"linux_64_blas_impl{blas}cuda{cuda}python{python[:4]}"
                text = SUPPORT.format(blas=blas, cuda=cuda, gcc=gcc, python=python)
                (folder / f".ci_support/{name}.yaml").write_text(text)
                start = f"{'cpu' if cuda == 'None' else 'cuda'}_{blas}_"
                sets[f"{start}py{python[:4].replace('.', '')}_"] = name
    (folder / ".ci_support/osx_64_.yaml").write_text("python: ['3.12']\n")
    return sets


def test_a_feedstock_comes_in(tmp_path: Path, torchyard: Command) -> None:
    """The plan has the packages that the files of .ci_support ask for, by their build strings."""
    folder = tmp_path / "pytorch-feedstock"
    sets = feedstock(folder)
    file = tmp_path / "torchyard.toml"
    made = torchyard("init", "--feedstock", folder, "-f", file)
    assert made.code == 0, made.err
    written = file.read_text()
    assert "not osx-64, of .ci_support" in written
    assert tomllib.loads(written)["source"] == {"path": "pytorch-feedstock"}
    config = load_config(str(file))
    builds = [f"{output.cell.package} {output.build}" for output in config.recipe_outputs]
    wanted = [start for start in sets if not ("cuda" in start and "py313" in start)]
    pythons = sorted(text for text in builds if text.startswith("pytorch ") and "_py" in text)
    assert len(pythons) == len(wanted) == 6
    assert all(any(f"pytorch {start}" in text for text in pythons) for start in wanted)
    assert len([text for text in builds if text.startswith("libtorch ")]) == 4
    assert len([text for text in builds if text.startswith(("pytorch-cpu ", "pytorch-gpu "))]) == 4
    plan = make_plan(config)
    cells = {cell.path for cell in plan.cells()}
    needed = inputs(plan, "bindings:linux-x86_64/cu130-mkl/cp312")
    assert needed == {"source:", "cu130-mkl"}
    assert "linux-x86_64/cu130-mkl/cp312/pytorch" in cells
    assert "linux-x86_64/cu130-mkl/any/libtorch" in cells
    assert "linux-x86_64/cpu-libopenblas/cp313/pytorch" in cells
    assert "linux-x86_64/cu130-mkl/cp313/pytorch" not in cells


def test_a_project_with_a_recipe_beside_it_is_no_recipe(gauge: Path, torchyard: Command) -> None:
    """Only if asked for; the recipe says the rest itself."""
    file = gauge / "t.toml"
    (gauge / "CMakeLists.txt").write_text("project(gauge)\n")
    torchyard("init", "-f", file)
    assert 'recipe = "conda"' not in file.read_text()
    assert torchyard("init", "--recipe", "conda", "-f", file, "--force").code == 0
    assert 'recipe = "conda"' in file.read_text()
    named = torchyard("init", "--recipe", "conda", "--name", "x", "-f", file, "--force")
    assert "--name: a conda recipe says itself" in named.err
    other = torchyard("init", "--feedstock", gauge, "--recipe", "pytorch", "-f", file, "--force")
    assert "run as it is, not by `pytorch`" in other.err


def test_channels_of_other_recipes_are_refused(tmp_path: Path, torchyard: Command) -> None:
    file = tmp_path / "torchyard.toml"
    assert torchyard("init", "-f", file).code == 0
    with file.open("a") as text:
        text.write('\n[conda]\nchannels = ["x"]\n')
    assert "these channels are for recipe `conda`" in torchyard("plan", "-f", file).err


def test_init_refuses_what_is_no_recipe(tmp_path: Path, torchyard: Command) -> None:
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe/meta.yaml").write_text("package: {}\n")
    old = torchyard("init", "--feedstock", tmp_path, "-f", tmp_path / "torchyard.toml")
    assert old.code != 0
    assert "is a recipe for conda-build" in old.err
    none = torchyard("init", "--feedstock", tmp_path / "recipe/x", "-f", tmp_path / "t.toml")
    assert "there is no `recipe.yaml`" in none.err


def test_plans_are_data(gauge: Path, torchyard: Command) -> None:
    told = torchyard("plan", "--json", "-f", gauge / "torchyard.toml")
    assert told.code == 0, told.err
    assert json.loads(told.out)["project"]["recipe"] == "conda"
