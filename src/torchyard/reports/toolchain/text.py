"""The toolchains of this machine, for people."""

from rich.console import Group, RenderableType
from rich.text import Text

from torchyard.reports.toolchain.document import PartDocument, ToolchainDocument, toolkits_by_title
from torchyard.terminal.tables import folded, table, word


def toolchain_report(document: ToolchainDocument) -> RenderableType:
    """Show interpreters, all parts with their identities, and what the file would use."""
    parts: list[RenderableType] = [Text(document.platform, style="bold"), ""]
    if document.interpreters:
        parts += [_interpreters(document), ""]
    groups = {
        "compiler": document.compilers,
        **toolkits_by_title(document),
        "BLAS": document.blas,
        **({"library": document.libraries} if document.libraries else {}),
    }
    parts.append(_parts(groups))
    if document.parts or document.missing:
        parts += ["", _chosen(document)]
    return Group(*parts)


def _interpreters(document: ToolchainDocument) -> RenderableType:
    return table(
        (*map(word, ("python", "version", "from", "headers")), folded("path")),
        (
            (one.tag, one.version, one.origin, "yes" if one.headers else "no", one.path)
            for one in document.interpreters
        ),
    )


def _parts(groups: dict[str, list[PartDocument]]) -> RenderableType:
    none = PartDocument(identity="none found", place=None)
    return table(
        (word("kind"), folded("identity"), folded("place")),
        (
            (kind, part.identity, part.place or "·")
            for kind, parts in groups.items()
            for part in parts or [none]
        ),
    )


def _chosen(document: ToolchainDocument) -> RenderableType:
    missing = {name: f"missing: {why}" for name, why in document.missing.items()}
    rows = (*document.parts.items(), *missing.items())
    return table((word("the file's"), folded("is compiled with")), rows)
