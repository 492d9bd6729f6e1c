"""A plan in numbers."""

from collections import Counter
from typing import NamedTuple

from torchyard.model.identifier import ANY_PYTHON
from torchyard.model.recipe import Stage
from torchyard.plan.graph import Plan


class Summary(NamedTuple):
    """Counts of packages and jobs, in the order of the file."""

    total: int
    packages: dict[str, int]
    platforms: dict[str, dict[str, int]]
    dimensions: dict[str, dict[str, int]]
    stages: dict[Stage, int]
    compilations: int
    """How often the expensive part is compiled: cores, or an extension's bindings."""

    @property
    def saved(self) -> int:
        return self.total - self.compilations

    @property
    def factor(self) -> float:
        return self.total / self.compilations


def summarize(plan: Plan) -> Summary:
    cells = list(plan.cells())
    columns = [Counter(column) for column in zip(*cells, strict=True)]
    by_platform = Counter((cell.platform, cell.package) for cell in cells)
    stages = plan.stage_counts()
    dimensions = {
        dimension.value: {value: counts[value] for value in (*known, ANY_PYTHON) if counts[value]}
        for dimension, known, counts in zip(
            plan.yard.project.recipe.dimensions, plan.expansion.values, columns, strict=False
        )
    }
    packages = dimensions.get("package", {})
    return Summary(
        total=len(cells),
        packages=packages,
        platforms={
            platform: {
                package: by_platform[platform, package]
                for package in packages
                if by_platform[platform, package]
            }
            for platform in dimensions.get("platform", ())
        },
        dimensions=dimensions,
        stages=stages,
        compilations=stages.get(Stage.CORE) or stages.get(Stage.BINDINGS, 0) or 1,
    )
