"""Read conda recipes by rattler-build, which runs nothing of them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple, cast

from torchyard.errors import ConfigError
from torchyard.host.entry_points import require_module

if TYPE_CHECKING:
    from rattler_build import RenderConfig, RenderedVariant, Stage0Recipe

_NAMED = re.compile(r"\$\{\{\s*(\w+)(?:\s*\|\s*lower)?\s*\}\}")
RECIPE = "recipe.yaml"
_FOLDERS = (".", "recipe")
_BESIDE = ("conda_build_config.yaml", "variants.yaml")
SUPPORT = ".ci_support"
"""The directory of a feedstock with a file for each set of variants, as `linux_64_….yaml`."""

Condition = str | Mapping[str, object]
"""An entry of `skip`: an expression, or a table with `if`, `then` and `else`."""


class OutputName(NamedTuple):
    """What names a package of a recipe, whatever its variant."""

    name: str
    version: str
    build: str

    @property
    def file(self) -> str:
        """The file name without its suffix."""
        return "-".join(self)


def find_conda_recipe(folder: Path) -> Path | None:
    """Return the recipe in a directory, or in that of a feedstock; None if there is none."""
    places = (folder / name / RECIPE for name in _FOLDERS)
    return next((path for path in places if path.is_file()), None)


def recipe_name(path: Path) -> str:
    """Return the name of a recipe, with the plain values of its context; else with templates."""
    require_module("rattler_build", "conda recipes")
    from rattler_build import Stage0Recipe  # noqa: PLC0415 - an optional extra

    recipe = Stage0Recipe.from_file(path)
    written = recipe.to_dict()
    name = str((written.get("recipe") or written["package"])["name"])
    return _NAMED.sub(lambda found: str(recipe.context.get(found[1], found[0])), name)


def output_name(rendered: "RenderedVariant") -> OutputName:
    """Return the name of an output."""
    recipe = rendered.recipe
    return OutputName(recipe.package.name, recipe.package.version, str(recipe.build.string))


def render_recipe(
    folder: Path, subdir: str, only: Mapping[str, str] | None = None
) -> list["RenderedVariant"]:
    """Return the outputs of a recipe in all of their variants for a subdir, in building order.

    With `only`, those of these names with this version and build string, as `1.2.0-h0123456_0`.

    Variants are those beside the recipe. Of a feedstock, each file of `.ci_support` that is for the
    subdir is a set of them, as its CI builds it.
    """
    path = find_conda_recipe(folder)
    if path is None:
        msg = f"there is no `{RECIPE}` in `{folder}`"
        raise ConfigError(msg, hint="`path` of [source] is the recipe's directory, or a feedstock")
    require_module("rattler_build", "conda recipes")
    from rattler_build import (  # noqa: PLC0415 - an optional extra
        JinjaConfig,
        PlatformConfig,
        RattlerBuildError,
        RenderConfig,
        Stage0Recipe,
        VariantConfig,
    )

    platform = PlatformConfig(target_platform=subdir, experimental=True)
    config, jinja = RenderConfig(platform), JinjaConfig(platform)
    found: dict[OutputName, RenderedVariant] = {}
    try:
        recipe = Stage0Recipe.from_file(path)
        for files in variant_files(folder, path.parent, subdir):
            variants = VariantConfig.from_files_with_context([*files], jinja)
            for rendered in recipe.render(variants, config):
                if not _is_skipped(recipe, rendered, config):
                    found.setdefault(output_name(rendered), rendered)
    except (RattlerBuildError, OSError, ValueError) as error:
        msg = f"`{path.relative_to(folder)}` can't be read: {error}"
        raise ConfigError(msg, hint="`rattler-build build --render-only` says the same") from error
    return [
        rendered
        for name, rendered in found.items()
        if only is None or only.get(name.name) == f"{name.version}-{name.build}"
    ]


def variant_files(folder: Path, recipe: Path, subdir: str) -> Iterator[list[Path]]:
    """Yield the files of each set of variants, the last one preferred."""
    beside = [path for path in (recipe / name for name in _BESIDE) if path.is_file()]
    sets = sorted(folder.glob(f"{SUPPORT}/{subdir.replace('-', '_')}_*.yaml"))
    yield from ([*beside, path] for path in sets)
    if not sets:
        yield beside


def _is_skipped(
    recipe: "Stage0Recipe", rendered: "RenderedVariant", config: "RenderConfig"
) -> bool:
    """Return whether the recipe skips an output in its variant, which rendering ignores."""
    name, written = rendered.recipe.package.name, recipe.to_dict()
    conditions = [_expression(entry) for entry in _skips(written["build"])]
    for output in written.get("outputs", ()):
        if output.get("package", {}).get("name") == name:
            conditions += [_expression(entry) for entry in _skips(output["build"])]
    return any(_holds(text, recipe.context, rendered.variant, config) for text in conditions)


def _skips(build: Mapping[str, object]) -> Iterable[Condition]:
    return cast("Iterable[Condition]", build.get("skip") or ())


def _expression(entry: Condition) -> str:
    if isinstance(entry, str):
        return entry
    return f"({entry['then']}) if ({entry['if']}) else ({entry.get('else', 'false')})"


def _holds(
    expression: str,
    context: Mapping[str, object],
    variant: Mapping[str, str],
    config: "RenderConfig",
) -> bool:
    """Return whether an expression holds: rattler-build evaluates it, in a recipe of our own."""
    from rattler_build import Stage0Recipe, VariantConfig  # noqa: PLC0415 - as above

    text = f"${{{{ 'yes' if ({expression}) else 'no' }}}}"
    draft = {
        "context": dict(context),
        "package": {"name": "skip", "version": "0"},
        "build": {"string": text},
    }
    with TemporaryDirectory(prefix="torchyard-recipe-") as scratch:
        recipe = Stage0Recipe.from_dict(draft, recipe_dir=scratch)
        variants = VariantConfig({key: [value] for key, value in variant.items()})
        return all(made.recipe.build.string == "yes" for made in recipe.render(variants, config))
