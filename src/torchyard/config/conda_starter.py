"""Write a first `torchyard.toml` for a conda recipe."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from torchyard.config.recipe_outputs import read_recipe_outputs
from torchyard.config.starter import template
from torchyard.errors import UsageError
from torchyard.model.identifier import PROJECT_NAME
from torchyard.model.lock import CONDA
from torchyard.model.recipe_output import RecipeOutput
from torchyard.model.tables import Tables
from torchyard.toolchain.conda_recipe import (
    SUPPORT,
    find_conda_recipe,
    recipe_name,
    variant_files,
)

_TEMPLATE = "templates/conda.toml"
_OLD = "meta.yaml"
_PROJECT = ("setup.py", "pyproject.toml", "CMakeLists.txt")
_SUBDIR = re.compile(r"([a-z]+_[a-z0-9]+)_")


def asked_recipe(
    here: Path, given: Mapping[str, str], lists: Mapping[str, Sequence[str]]
) -> Path | None:
    """Return the directory of the conda recipe that options of `init` ask to run; None for another.

    Without options that is a directory with a recipe, and without a project beside it.
    """
    folder = Path(given["feedstock"]) if "feedstock" in given else here / given.get("path", ".")
    if "feedstock" not in given and given.get("recipe") != CONDA:
        is_project = any((folder / name).is_file() for name in _PROJECT)
        is_plain = given.keys() <= {"path"} and not is_project
        return folder if is_plain and find_conda_recipe(folder) else None
    if given.get("recipe", CONDA) != CONDA:
        msg = f"--feedstock has a recipe that is run as it is, not by `{given['recipe']}`"
        raise UsageError(msg, hint="leave --recipe out")
    options = {*given, *(name for name, values in lists.items() if values)}
    if other := options - {"recipe", "path", "feedstock", "platform"}:
        msg = f"--{min(other)}: a conda recipe says itself what is built"
        raise UsageError(msg, hint="its variants are beside it")
    return folder


def conda_starter(
    folder: Path, beside: Path, platforms: Sequence[str], here: str, tables: Tables
) -> str:
    """Return the text of a file in the directory `beside` for the recipe in another one.

    Platforms are those of a feedstock's `.ci_support` that jobs run on, or else `here`.
    """
    path = find_conda_recipe(folder)
    if path is None:
        raise _refusal(folder)
    found = {
        match[1].replace("_", "-")
        for file in sorted(folder.glob(f"{SUPPORT}/*.yaml"))
        if (match := _SUBDIR.match(file.name))
    }
    known = {row.conda_subdir: name for name, row in tables.platforms.items() if row.built}
    usual = [name for subdir, name in known.items() if subdir in found] or [here]
    outputs = read_recipe_outputs(str(folder), platforms or usual, tables)
    name = recipe_name(path)
    subdirs = [tables.platforms[platform].conda_subdir for platform in platforms or usual]
    sets = [files for subdir in subdirs for files in variant_files(folder, path.parent, subdir)]
    read = dict.fromkeys(str(file.relative_to(folder)) for files in sets for file in files)
    return template(_TEMPLATE).render(
        name=name if PROJECT_NAME.fullmatch(name) else outputs[0].cell.package.strip("_"),
        version=_version(outputs),
        recipe=str(path.relative_to(folder)),
        path=Path(os.path.relpath(folder, beside)).as_posix(),
        variants=[*read] or ["no file: there are none"],
        platform=tuple(platforms or usual),
        others=sorted(found - {*subdirs}),
        channels=[*dict.fromkeys(name for output in outputs for name in output.channels)],
    )


def _version(outputs: Sequence[RecipeOutput]) -> str:
    """Return the version of most outputs."""
    versions = [output.version for output in outputs]
    return max(versions, key=versions.count)


def _refusal(folder: Path) -> UsageError:
    old = next((p for p in (folder / _OLD, folder / "recipe" / _OLD) if p.is_file()), None)
    if old is None:
        return UsageError(f"there is no `recipe.yaml` in `{folder}`, nor in `recipe` there")
    msg = f"`{old}` is a recipe for conda-build, and rattler-build reads `recipe.yaml`"
    return UsageError(msg, hint="`feedrattler` or `conda-recipe-manager convert` translates it")
