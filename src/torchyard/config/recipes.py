"""The shapes of recipes: built-in ones, each with a table in `data/recipes`, and plug-ins.

A plug-in is an entry point of the group `torchyard.recipes`: a module with a `SHAPE`, and the steps
that `torchyard.recipes.recipe` describes. Plug-ins are loaded only for recipes that are not
built in.
"""

import tomllib
from functools import cache

import msgspec

from torchyard.errors import DataError
from torchyard.host.files import list_data, read_data
from torchyard.model.recipe import Recipe

GROUP = "torchyard.recipes"

DEFAULT_RECIPE = "pytorch"


def known_recipes() -> dict[str, Recipe]:
    """Return the shapes of all recipes, the default first; of plug-ins, only loaded ones."""
    return {**_ours(), **(_plug_ins() if _plug_ins.cache_info().currsize else {})}


def find_recipe(name: str) -> Recipe | None:
    """Return the shape of a recipe, or None."""
    return _ours().get(name) or _plug_ins().get(name)


@cache
def _ours() -> dict[str, Recipe]:
    names = sorted(file.removesuffix(".toml") for file in list_data("recipes"))
    names.sort(key=lambda name: name != DEFAULT_RECIPE)
    return {name: parse_recipe(name, read_data(f"recipes/{name}.toml")) for name in names}


def parse_recipe(name: str, text: str) -> Recipe:
    """Return the recipe that a table describes."""
    try:
        return msgspec.convert({"name": name, **tomllib.loads(text)}, Recipe)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        msg = f"the table data/recipes/{name}.toml is malformed: {error}"
        raise DataError(msg) from error


@cache
def _plug_ins() -> dict[str, Recipe]:
    from torchyard.host.entry_points import entry_points_in, load  # noqa: PLC0415 - slow

    found: dict[str, Recipe] = {}
    for name, point in entry_points_in(GROUP).items():
        shape = getattr(load(point, f"recipe {name}"), "SHAPE", None)
        if not isinstance(shape, Recipe) or shape.name != name:
            msg = f"the plug-in for recipe `{name}` has no `SHAPE` of this name"
            raise DataError(msg, hint="a recipe's module has SHAPE = Recipe(name=…, …)")
        found[name] = shape
    return found
