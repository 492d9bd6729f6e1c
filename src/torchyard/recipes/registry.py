"""Recipes by name: modules of this package, and plug-ins."""

from importlib import import_module
from typing import cast

from torchyard.config.recipes import GROUP
from torchyard.errors import PlanError
from torchyard.host.files import list_data
from torchyard.recipes.recipe import RecipeModule


def recipe_module(name: str) -> RecipeModule:
    """Return the module of a recipe."""
    if f"{name}.toml" in list_data("recipes"):
        return cast("RecipeModule", import_module(f"torchyard.recipes.{name}"))
    from torchyard.host.entry_points import entry_points_in, load  # noqa: PLC0415 - slow

    point = entry_points_in(GROUP).get(name)
    if point is None:
        msg = f"there is no recipe `{name}` here"
        raise PlanError(msg, hint="install the plug-in that the plan was made with")
    return cast("RecipeModule", load(point, f"recipe {name}"))
