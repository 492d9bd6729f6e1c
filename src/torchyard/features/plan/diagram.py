"""A plan as the text of a Mermaid or Graphviz diagram, folded to a readable size.

Cores with the same packages become one row.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import wrap
from typing import NamedTuple

from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.recipe import Stage

_CHARACTERS = 30
"""The longest line of a node."""

COLOURS = {
    Stage.SOURCE: "#e8e8e8",
    Stage.CORE: "#f9d9b8",
    Stage.BINDINGS: "#f7ecb5",
    Stage.PACKAGE: "#cfe8cf",
    Stage.CHECK: "#cfe0f3",
    Stage.SMOKE: "#cfe0f3",
    Stage.PUBLISH: "#e3d3ee",
}


class JobGroup(NamedTuple):
    """Similar jobs of a stage."""

    name: str
    stage: Stage
    row: int
    title: str
    lines: tuple[str, ...]


class Drawing(NamedTuple):
    """Nodes, the edges between their names, and the rows of each platform."""

    title: str
    nodes: tuple[JobGroup, ...]
    edges: tuple[tuple[str, str], ...]
    platforms: dict[str, tuple[int, ...]]

    @property
    def unframed(self) -> list[JobGroup]:
        """The nodes without a platform."""
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
    """Cores of a platform with the same packages."""

    platform: str
    cores: tuple[str, ...]
    pythons: tuple[str, ...]
    packages: tuple[tuple[str, int], ...]


def fold(cells: Sequence[str], channels: Sequence[str], *, has_core: bool) -> Drawing:
    """Draw one row for all cores of a platform with the same packages."""
    rows = _rows(Cell.from_path(cell.partition("/")[2]) for cell in cells)
    label = cells[0].partition("/")[0]
    nodes = [JobGroup("source", Stage.SOURCE, 0, "source", (label,))]
    edges: list[tuple[str, str]] = []
    platforms: dict[str, tuple[int, ...]] = {}
    for index, row in enumerate(rows):
        platforms[row.platform] = (*platforms.get(row.platform, ()), index)
        for name, stage, title, lines, above in _row_nodes(index, row, has_core=has_core):
            nodes.append(JobGroup(name, stage, index, title, lines))
            edges += [(source, name) for source in above]
    for number, channel in enumerate(channels):
        nodes.append(JobGroup(f"publish{number}", Stage.PUBLISH, 0, "publish", (channel,)))
        edges += [(f"smoke{index}", f"publish{number}") for index in range(len(rows))]
    return Drawing(label, tuple(nodes), tuple(edges), platforms)


def _row_nodes(
    index: int, row: _Row, *, has_core: bool
) -> list[tuple[str, Stage, str, tuple[str, ...], tuple[str, ...]]]:
    """Yield a row's nodes: name, stage, title, lines, and the names of their inputs."""
    count = len(row.cores)
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


def _rows(planned: Iterable[Cell]) -> list[_Row]:
    blocks: dict[tuple[str, str], list[Cell]] = {}
    for cell in planned:
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


def mermaid(drawing: Drawing) -> str:
    """Return text that GitHub and GitLab draw in a ```mermaid block."""
    lines = ["flowchart LR"]
    lines += [f"  {_mermaid_node(node)}" for node in drawing.unframed]
    for platform, nodes in drawing.framed.items():
        lines.append(f'  subgraph {platform.replace("-", "_")}["{platform}"]')
        lines += [f"    {_mermaid_node(node)}" for node in nodes]
        lines.append("  end")
    lines += [f"  {source} --> {target}" for source, target in drawing.edges]
    for stage, colour in COLOURS.items():
        names = [node.name for node in drawing.nodes if node.stage is stage]
        if names:
            lines.append(f"  classDef {stage.value} fill:{colour},stroke:#888,color:#222")
            lines.append(f"  class {','.join(names)} {stage.value}")
    return "\n".join(lines) + "\n"


def _mermaid_node(node: JobGroup) -> str:
    return f'{node.name}["{"<br/>".join((f"<b>{node.title}</b>", *_wrapped(node)))}"]'


def dot(drawing: Drawing) -> str:
    """Return text for Graphviz."""
    lines = [
        "digraph plan {",
        "  rankdir=LR; node [shape=box, style=filled, fontname=Helvetica, fontsize=10];",
    ]
    for platform, nodes in drawing.framed.items():
        lines.append(f'  subgraph "cluster_{platform}" {{ label="{platform}";')
        lines += [f"    {_dot_node(node)}" for node in nodes]
        lines.append("  }")
    lines += [f"  {_dot_node(node)}" for node in drawing.unframed]
    lines += [f'  "{source}" -> "{target}";' for source, target in drawing.edges]
    return "\n".join((*lines, "}")) + "\n"


def _dot_node(node: JobGroup) -> str:
    label = "\\n".join((node.title, *_wrapped(node)))
    return f'"{node.name}" [label="{label}", fillcolor="{COLOURS[node.stage]}"];'


def _wrapped(node: JobGroup) -> list[str]:
    """Return a node's details, wrapped."""
    return wrap(", ".join(node.lines), _CHARACTERS, break_long_words=False, break_on_hyphens=False)


DIAGRAMS: Mapping[str, Callable[[Drawing], str]] = {"mermaid": mermaid, "dot": dot}
