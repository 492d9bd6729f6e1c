"""A plan folded to a readable size: cores with the same packages become one row."""

from typing import NamedTuple

from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.recipe import Stage
from torchyard.plan.graph import Plan


class JobGroup(NamedTuple):
    """Some jobs of one stage that look alike."""

    name: str
    stage: Stage
    row: int
    title: str
    lines: tuple[str, ...]


class Drawing(NamedTuple):
    """Nodes, the edges between their names, and the rows that belong to each platform."""

    title: str
    nodes: tuple[JobGroup, ...]
    edges: tuple[tuple[str, str], ...]
    platforms: dict[str, tuple[int, ...]]

    @property
    def unframed(self) -> list[JobGroup]:
        """The nodes that belong to no platform."""
        return [node for node in self.nodes if node.stage in (Stage.SOURCE, Stage.PUBLISH)]

    @property
    def framed(self) -> dict[str, list[JobGroup]]:
        """The other nodes, by platform."""
        inside = [node for node in self.nodes if node not in self.unframed]
        return {
            platform: [node for node in inside if node.row in rows]
            for platform, rows in self.platforms.items()
        }


class _Row(NamedTuple):
    """Cores of one platform that have the same packages."""

    platform: str
    cores: tuple[str, ...]
    pythons: tuple[str, ...]
    packages: tuple[tuple[str, int], ...]


def fold(plan: Plan) -> Drawing:
    """Draw one row for all cores of a platform that lead to the same packages."""
    rows = _rows(plan)
    nodes = [JobGroup("source", Stage.SOURCE, 0, "source", (plan.label,))]
    edges: list[tuple[str, str]] = []
    platforms: dict[str, tuple[int, ...]] = {}
    channels = [job.scope[0] for job in plan.jobs if job.stage is Stage.PUBLISH]
    for index, row in enumerate(rows):
        platforms[row.platform] = (*platforms.get(row.platform, ()), index)
        for name, stage, title, lines, above in _row_nodes(plan, index, row):
            nodes.append(JobGroup(name, stage, index, title, lines))
            edges += [(source, name) for source in above]
    for number, channel in enumerate(channels):
        nodes.append(JobGroup(f"publish{number}", Stage.PUBLISH, 0, "publish", (channel,)))
        edges += [(f"smoke{index}", f"publish{number}") for index in range(len(rows))]
    return Drawing(plan.label, tuple(nodes), tuple(edges), platforms)


def _row_nodes(
    plan: Plan, index: int, row: _Row
) -> list[tuple[str, Stage, str, tuple[str, ...], tuple[str, ...]]]:
    """A row's nodes: name, stage, title, lines, and the names of what they need."""
    count = len(row.cores)
    has_core = Stage.CORE in plan.config.project.recipe.stages
    total = count * sum(number for _, number in row.packages)
    made = tuple(
        f"{count * number:,}\N{NO-BREAK SPACE}{package}" for package, number in row.packages
    )
    nodes: list[tuple[str, Stage, str, tuple[str, ...], tuple[str, ...]]] = []
    base = "source"
    if has_core:
        base = f"core{index}"
        nodes.append((base, Stage.CORE, _times("core", count), row.cores, ("source",)))
    parents = [base] if has_core else []
    if row.pythons:
        name = f"bindings{index}"
        title = _times("bindings", count * len(row.pythons))
        lines = row.pythons if has_core else (*row.cores, *row.pythons)
        nodes.append((name, Stage.BINDINGS, title, lines, (base,)))
        parents.append(name)
    package, smoke = f"package{index}", f"smoke{index}"
    nodes.append((package, Stage.PACKAGE, _times("package", total), made, tuple(parents)))
    nodes.append((smoke, Stage.SMOKE, _times("check, smoke", total), (), (package,)))
    return nodes


def _times(word: str, count: int) -> str:
    return f"{word} × {count:,}" if count > 1 else word


def _rows(plan: Plan) -> list[_Row]:
    blocks: dict[tuple[str, str], list[Cell]] = {}
    for cell in plan.cells():
        blocks.setdefault((cell.platform, f"{cell.compute}-{cell.variant}"), []).append(cell)
    alike: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for (platform, core), cells in blocks.items():
        pairs = tuple((cell.python, cell.package) for cell in cells)
        alike.setdefault((platform, pairs), []).append(core)
    rows = []
    for (platform, pairs), cores in alike.items():
        packages: dict[str, int] = {}
        for _, package in pairs:
            packages[package] = packages.get(package, 0) + 1
        pythons = dict.fromkeys(python for python, _ in pairs if python != ANY_PYTHON)
        rows.append(_Row(platform, tuple(cores), tuple(pythons), tuple(packages.items())))
    order = {row.platform: number for number, row in enumerate(reversed(rows))}
    return sorted(rows, key=lambda row: -order[row.platform])
