"""A folded plan as Mermaid, Graphviz or SVG text."""

from collections.abc import Callable, Mapping
from html import escape
from textwrap import wrap

from torchyard.model.recipe import Stage
from torchyard.reports.plan.diagram_model import Drawing, Node

COLOURS = {
    Stage.SOURCE: "#e8e8e8",
    Stage.CORE: "#f9d9b8",
    Stage.BINDINGS: "#f7ecb5",
    Stage.PACKAGE: "#cfe8cf",
    Stage.CHECK: "#cfe0f3",
    Stage.SMOKE: "#cfe0f3",
    Stage.PUBLISH: "#e3d3ee",
}


def mermaid(drawing: Drawing) -> str:
    """Text that GitHub and GitLab draw by themselves in a ```mermaid block."""
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


def _mermaid_node(node: Node) -> str:
    return f'{node.name}["{"<br/>".join((f"<b>{node.title}</b>", *_wrapped(node)))}"]'


def dot(drawing: Drawing) -> str:
    """Text for Graphviz."""
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


def _dot_node(node: Node) -> str:
    label = "\\n".join((node.title, *_wrapped(node)))
    return f'"{node.name}" [label="{label}", fillcolor="{COLOURS[node.stage]}"];'


def _wrapped(node: Node) -> list[str]:
    """A node's details in lines of a bearable length."""
    return wrap(", ".join(node.lines), _CHARACTERS, break_long_words=False, break_on_hyphens=False)


_CHARACTERS = 30
_WIDTH, _LINE, _PAD, _GAP = 204, 15, 8, 46
_COLUMNS = (
    (Stage.SOURCE,),
    (Stage.CORE,),
    (Stage.BINDINGS,),
    (Stage.PACKAGE,),
    (Stage.CHECK, Stage.SMOKE),
    (Stage.PUBLISH,),
)


def svg(drawing: Drawing) -> str:
    """A picture that stands alone: a column for each stage, a band for each platform."""
    used = [c for c in _COLUMNS if any(node.stage in c for node in drawing.nodes)]
    column = {stage: index for index, stages in enumerate(used) for stage in stages}
    tops, bands, height = _rows(drawing)
    boxes: dict[str, tuple[int, int, int]] = {}
    for node in drawing.nodes:
        x = 20 + column[node.stage] * (_WIDTH + _GAP)
        boxes[node.name] = (x, tops[node.row], _height(node))
    for stage in (Stage.SOURCE, Stage.PUBLISH):
        stack = [node for node in drawing.unframed if node.stage is stage]
        y = max(14, height // 2 - 30 * len(stack))
        for node in stack:
            boxes[node.name] = (boxes[node.name][0], y, _height(node))
            y += 60
        height = max(height, y)
    width = 20 + len(used) * (_WIDTH + _GAP)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="Helvetica, Arial, sans-serif" '
            'font-size="12" role="img">'
        ),
        f"<title>Plan of {escape(drawing.title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    left = 10 + _WIDTH + _GAP
    right = 20 + column[Stage.SMOKE] * (_WIDTH + _GAP) + _WIDTH + 10
    for platform, (top, bottom) in bands.items():
        parts.append(
            f'<rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" rx="6" '
            f'fill="#f7f7f7" stroke="#dddddd"/>'
            f'<text x="{left + 10}" y="{top + 17}" font-weight="bold" fill="#444444">'
            f"{escape(platform)}</text>"
        )
    lanes = {node.row: tops[node.row] for node in drawing.nodes}
    for nodes in drawing.framed.values():
        for node in nodes:
            lanes[node.row] = max(lanes[node.row], tops[node.row] + _height(node) + 4)
    rows = {node.name: node.row for node in drawing.nodes}
    parts += [
        _edge(boxes[source], boxes[target], lanes[rows[target]]) for source, target in drawing.edges
    ]
    parts += [_box(node, *boxes[node.name]) for node in drawing.nodes]
    return "\n".join((*parts, "</svg>")) + "\n"


def _height(node: Node) -> int:
    return _PAD * 2 + _LINE * (1 + len(_wrapped(node)))


def _rows(drawing: Drawing) -> tuple[dict[int, int], dict[str, tuple[int, int]], int]:
    """The top of each row, the top and bottom of each platform's band, and the whole height."""
    tops: dict[int, int] = {}
    bands = {}
    y = 14
    for platform, rows in drawing.platforms.items():
        start = y
        y += 26
        for row in rows:
            tops[row] = y
            inside = (node for node in drawing.framed[platform] if node.row == row)
            y += max(map(_height, inside)) + 10
        bands[platform] = (start, y)
        y += 12
    return tops, bands, y


def _box(node: Node, x: int, y: int, tall: int) -> str:
    lines = _wrapped(node)
    text = "".join(
        f'<text x="{x + 10}" y="{y + _PAD + 12 + _LINE * (number + 1)}" fill="#333333">'
        f"{escape(line)}</text>"
        for number, line in enumerate(lines)
    )
    return (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{tall}" rx="5" '
        f'fill="{COLOURS[node.stage]}" stroke="#888888"/>'
        f'<text x="{x + 10}" y="{y + _PAD + 11}" font-weight="bold" fill="#222222">'
        f"{escape(node.title)}</text>{text}"
    )


def _edge(source: tuple[int, int, int], target: tuple[int, int, int], lane: int) -> str:
    """A line from box to box; one that passes another box runs below it, along the lane."""
    x1, y1 = source[0] + _WIDTH, source[1] + _PAD + _LINE // 2
    x2, y2 = target[0], target[1] + _PAD + _LINE // 2
    bend = x2 - _GAP // 2
    path = f"M{x1} {y1} H{bend - 10} C{bend} {y1} {bend} {y2} {bend + 10} {y2} H{x2}"
    if x1 + _GAP < x2 and y1 == y2:
        path = f"M{x1} {y1} C{x1 + 20} {y1} {x1 + 10} {lane} {x1 + 30} {lane} H{x2 - 30} "
        path += f"C{x2 - 10} {lane} {x2 - 20} {y2} {x2} {y2}"
    return f'<path d="{path}" fill="none" stroke="#aaaaaa"/>'


DIAGRAMS: Mapping[str, Callable[[Drawing], str]] = {"mermaid": mermaid, "dot": dot, "svg": svg}
