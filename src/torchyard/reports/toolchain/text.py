"""What compiles on this machine, as people read it."""

from rich.console import Group, RenderableType
from rich.text import Text

from torchyard.reports.tables import plain_table
from torchyard.reports.toolchain.document import PartDocument, ToolchainDocument


def toolchain_report(document: ToolchainDocument) -> RenderableType:
    """Interpreters, then all parts with their identities, then what the file would use."""
    parts: list[RenderableType] = [Text(document.platform, style="bold"), ""]
    if document.interpreters:
        parts += [_interpreters(document), ""]
    groups = {
        "compiler": document.compilers,
        "CUDA": document.cuda,
        "ROCm": document.rocm,
        "BLAS": document.blas,
    }
    parts.append(_parts(groups))
    if document.parts or document.missing:
        parts += ["", _chosen(document)]
    return Group(*parts)


def _interpreters(document: ToolchainDocument) -> RenderableType:
    table = plain_table()
    for heading in ("python", "version", "from", "headers"):
        table.add_column(heading, no_wrap=True)
    table.add_column("path", overflow="fold")
    for one in document.interpreters:
        headers = "yes" if one.headers else "no"
        table.add_row(one.tag, one.version, one.origin, headers, one.path)
    return table


def _parts(groups: dict[str, list[PartDocument]]) -> RenderableType:
    table = plain_table()
    table.add_column("kind", no_wrap=True)
    table.add_column("identity", overflow="fold")
    table.add_column("place", overflow="fold")
    for kind, parts in groups.items():
        for part in parts:
            table.add_row(kind, part.identity, part.place or "·")
        if not parts:
            table.add_row(kind, "none found", "·")
    return table


def _chosen(document: ToolchainDocument) -> RenderableType:
    table = plain_table()
    table.add_column("the file's", no_wrap=True)
    table.add_column("is compiled with", overflow="fold")
    for name, identity in document.parts.items():
        table.add_row(name, identity)
    for name, why in document.missing.items():
        table.add_row(name, f"missing: {why}")
    return table
