"""A folded plan as the text of a Mermaid or Graphviz diagram."""

from collections.abc import Callable, Mapping
from textwrap import wrap

from torchyard.model.recipe import Stage
from torchyard.reports.plan.diagram_model import Drawing, JobGroup

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


def _mermaid_node(node: JobGroup) -> str:
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


def _dot_node(node: JobGroup) -> str:
    label = "\\n".join((node.title, *_wrapped(node)))
    return f'"{node.name}" [label="{label}", fillcolor="{COLOURS[node.stage]}"];'


def _wrapped(node: JobGroup) -> list[str]:
    """A node's details in lines of a bearable length."""
    return wrap(", ".join(node.lines), _CHARACTERS, break_long_words=False, break_on_hyphens=False)


DIAGRAMS: Mapping[str, Callable[[Drawing], str]] = {"mermaid": mermaid, "dot": dot}
