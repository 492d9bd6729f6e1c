"""Counts of a plan's packages, jobs and rules."""

from collections import Counter
from collections.abc import Iterable

from torchyard.model.config import Config
from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.recipe import Stage
from torchyard.model.values import Reported
from torchyard.plan.admission import TABLES
from torchyard.plan.graph import Plan


class Estimate(Reported):
    """Total needs of the jobs in seconds and bytes; `timed` jobs declare a time."""

    jobs: int
    timed: int
    machine_time: int
    longest_path: int
    memory: int
    disk: int


def estimate(plan: Plan) -> Estimate:
    """Add up a plan. The longest path is its duration with unlimited machines."""
    timed = total = memory = disk = 0
    ends: list[int] = []
    for job in plan.jobs:
        needs = job.settings.needs
        timed += needs.time is not None
        total += needs.time or 0
        memory = max(memory, needs.memory or 0)
        disk = max(disk, needs.disk or 0)
        ends.append(max((ends[number] for number in job.inputs), default=0) + (needs.time or 0))
    return Estimate(len(plan), timed, total, max(ends, default=0), memory, disk)


class Summary(Reported, kw_only=True):
    """Counts of packages and jobs, in the order of the file.

    `compilations` counts how often the C++ code is compiled: cores, or an extension's bindings.
    `separate` counts how often it would be if each wheel, each zip and each Python's conda packages
    compiled it; `saved` is the difference. `served` counts further cells that these packages serve
    by their ABI class.
    """

    total: int
    packages: dict[str, int]
    platforms: dict[str, dict[str, int]]
    dimensions: dict[str, dict[str, int]]
    stages: dict[Stage, int]
    compilations: int
    separate: int
    saved: int
    served: int


class RuleCount(Reported):
    """How many cells one rule or table leaves out or adds."""

    reason: str
    origin: str
    cells: int


class OwnRow(Reported):
    """A table's row that the file adds or changes."""

    table: str
    name: str
    origin: str


def own_rows(config: Config) -> list[OwnRow]:
    """Return the rows that the file adds to tables or changes."""
    tables = config.tables
    names: dict[str, Iterable[str]] = {
        "releases": tables.releases,
        "pythons": tables.pythons,
        "compute": tables.compute,
        "trees": tables.trees,
        "builds": tables.builds,
    }
    return [
        OwnRow(table, name, str(origin))
        for table, rows in names.items()
        for name in rows
        if (origin := config.row_origin(table, name))
    ]


def exclusions(plan: Plan) -> list[RuleCount]:
    """Return the rules and tables that leave cells out, in the order of the file, tables last."""
    counts = Counter(absent.absence for absent in plan.absent())
    ordered = sorted(counts, key=lambda absence: (absence.origin is TABLES, absence.origin.line))
    return [RuleCount(absence.reason, str(absence.origin), counts[absence]) for absence in ordered]


def inclusions(plan: Plan) -> list[RuleCount]:
    """Return the inclusions with the number of cells they add; empty for a part of a plan."""
    if plan.partial or plan.subset:
        return []
    return [
        RuleCount(rule.reason, str(rule.origin), plan.expansion.effect(rule))
        for rule in plan.config.matrix.include
    ]


def _separate_builds(cells: Iterable[Cell], config: Config) -> int:
    """Return how many separate builds would make these packages.

    A wheel is a build, and so is a zip. Conda packages of one Python are made by one build, which
    also makes those for any Python: metapackages and libraries need no separate build.
    """
    pythons: dict[tuple[str, ...], set[str]] = {}
    for cell in cells:
        form = config.tables.packages[cell.package].format
        pythons.setdefault((*cell[:3], form), set()).add(cell.python)
    return sum(max(1, len(found - {ANY_PYTHON})) for found in pythons.values())


def summarize(plan: Plan) -> Summary:
    cells = list(plan.cells())
    columns = [Counter(column) for column in zip(*cells, strict=True)]
    by_platform = Counter((cell.platform, cell.package) for cell in cells)
    stages = plan.stage_counts()
    dimensions = {
        dimension.value: {value: counts[value] for value in (*known, ANY_PYTHON) if counts[value]}
        for dimension, known, counts in zip(
            plan.config.project.recipe.dimensions, plan.expansion.values, columns, strict=False
        )
    }
    packages = dimensions.get("package", {})
    compilations = stages.get(plan.config.project.recipe.compiling, 0)
    separate = _separate_builds(cells, plan.config)
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
        compilations=compilations,
        separate=separate,
        saved=max(0, separate - compilations),
        served=sum(bool(absent.absence.server) for absent in plan.absent()),
    )
