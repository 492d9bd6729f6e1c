"""Runs rattler-build alone on a recipe: `python bare_recipe.py RECIPE OUTPUT CHANNEL [SKIPPED]`.

It builds each output of each variant once, unless the variant has the word SKIPPED.
"""

import sys
from pathlib import Path

from rattler_build import (
    JinjaConfig,
    PlatformConfig,
    RenderConfig,
    Stage0Recipe,
    ToolConfiguration,
    VariantConfig,
)


def build(recipe: Path, output: Path, channel: str, skipped: str = "-") -> None:
    """Build the outputs of a recipe, in the order in which they are rendered."""
    platform = PlatformConfig(target_platform="linux-64", experimental=True)
    variants = VariantConfig.from_files_with_context(
        [recipe.parent / "conda_build_config.yaml"], JinjaConfig(platform)
    )
    done: set[tuple[str, str]] = set()
    for rendered in Stage0Recipe.from_file(recipe).render(variants, RenderConfig(platform)):
        made = (rendered.recipe.package.name, rendered.recipe.build.string)
        if made not in done and not any(skipped in text for text in rendered.variant.values()):
            done.add(made)
            quick = ToolConfiguration()
            rendered.run_build(quick, output, [channel], no_build_id=True, package_format="conda")


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
