"""A compute platform and a recipe take two files each, and no other file names one."""

import ast
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.support.helpers import ROOT

from torchyard.compute.registry import compute_platforms
from torchyard.config.recipes import known_recipes
from torchyard.package.formats import FORMATS

SOURCES = ROOT / "src/torchyard"
PLATFORMS = [platform.name for platform in compute_platforms()]
RECIPES = list(known_recipes())
RECIPE_WORDS = [name for name in RECIPES if name not in FORMATS]
"""Names that mean a recipe only; test_formats.py looks for the others."""

ALLOWED = {
    ("compute/registry.py", "cpu"): "the compute of packages without GPU code",
    ("config/recipe_outputs.py", "cu"): "of conda's `cuda_compiler_version`, a compute is made",
    ("package/conda/metadata.py", "cpu"): "the end of a metapackage's name, as conda-forge has it",
    ("checks/rules/conda_index.py", "cuda"): "the pin of conda's cuda-version",
    ("config/evaluate.py", "cuda"): "the key `cuda` of [toolchain] is a part of the file's format",
    ("config/recipes.py", "pytorch"): "the default of the key `recipe`",
    ("host/cgroups.py", "cpu"): "the name of a controller",
    ("package/elf/image.py", "cuda"): "a machine in the header of an ELF file",
    ("features/store/report.py", "cpu"): "seconds of processors",
}


@cache
def words(path: Path) -> list[str]:
    """Return every string of a module that is not a docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [one.value for one in strings if isinstance(one.value, str) and id(one) not in docs]


def naming(names: list[str], own: str) -> set[tuple[str, str]]:
    """The modules outside of a room that have one of some names as a string."""
    paths = (path.relative_to(SOURCES) for path in SOURCES.rglob("*.py"))
    others = [path for path in paths if path.parts[0] not in ("data", own)]
    return {(str(path), word) for path in others for word in words(SOURCES / path) if word in names}


def test_nobody_else_names_a_compute_platform() -> None:
    prefixes = {"cu", "__cuda", "cuda-toolkit", "rocm"}
    found = naming([*PLATFORMS, *prefixes], "compute")
    assert {one for one in found if one not in ALLOWED} == set()


def test_nobody_else_names_a_recipe() -> None:
    found = naming(RECIPE_WORDS, "recipes")
    assert {one for one in found if one not in ALLOWED} == set()


def test_inside_their_rooms_only_the_registry_names_one_of_several() -> None:
    for room, names in (("compute", PLATFORMS), ("recipes", RECIPE_WORDS)):
        for path in (SOURCES / room).rglob("*.py"):
            place = path.relative_to(SOURCES)
            owner = place.parts[1].removesuffix(".py")
            found = {(str(place), w) for w in words(path) if w in names and w != owner}
            vendors = {("compute/rocm/__init__.py", "cuda")}  # torch calls AMD's devices cuda
            assert found - ALLOWED.keys() - vendors == set()


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_compute_platform_is_a_module_and_a_table(name: str) -> None:
    module, table = SOURCES / "compute" / name, SOURCES / "data/compute" / f"{name}.toml"
    assert module.is_dir() or module.with_suffix(".py").is_file()
    assert table.is_file()


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_a_module_and_a_table(name: str) -> None:
    module, table = SOURCES / "recipes" / name, SOURCES / "data/recipes" / f"{name}.toml"
    assert module.is_dir() or module.with_suffix(".py").is_file()
    assert table.is_file()


def test_two_files_make_a_compute_platform_and_two_a_recipe(tmp_path: Path) -> None:
    """Do it: copy the package, write four files, and plan with both."""
    package = tmp_path / "torchyard"
    shutil.copytree(SOURCES, package, ignore=shutil.ignore_patterns("__pycache__"))
    before = {path for path in package.rglob("*") if path.is_file()}
    (package / "compute/abacus.py").write_text(COMPUTE, encoding="utf-8")
    (package / "data/compute/abacus.toml").write_text(TABLE, encoding="utf-8")
    (package / "recipes/pure.py").write_text(RECIPE, encoding="utf-8")
    (package / "data/recipes/pure.toml").write_text(SHAPE, encoding="utf-8")
    added = {path for path in package.rglob("*") if path.is_file()} - before
    assert len(added) == 4
    file = tmp_path / "torchyard.toml"
    file.write_text(FILE, encoding="utf-8")
    call = [sys.executable, "-m", "torchyard", "plan", "--list", "cells", "-f", str(file)]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "counting-1.0/linux-x86_64/abacus1-torch2.14/cp312/wheel\n"


COMPUTE = """
from torchyard.compute.platform import ComputePlatform
from torchyard.compute.table import ComputeRow, load_compute_table
class Abacus(ComputePlatform):
    name, title, label = "abacus", "Abacus", r"abacus\\d+"
    def table(self):
        return load_compute_table("abacus", ComputeRow)
platform = Abacus()
"""
TABLE = """
[abacus1]
pinned = false
platforms = ["linux-x86_64"]
"""
RECIPE = """
def steps(spec):
    return None
def environment(spec):
    return {}
"""
SHAPE = """
title = "packs Python files as they are"
variant = "torch"
stages = ["source", "bindings", "package", "check", "smoke", "publish"]
packages = ["wheel"]
"""
FILE = """
[project]
name = "counting"
version = "1.0"
recipe = "pure"
[source]
git = "https://example.org/counting"
rev = "v1"
[matrix]
platform = ["linux-x86_64"]
compute = ["abacus1"]
torch = ["torch2.14"]
python = ["cp312"]
package = ["wheel"]
"""
