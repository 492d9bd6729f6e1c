"""What is wrong with an index, as people read it."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from torchyard.inspect.audit_documents import IndexCheckDocument, IndexRuleDocument
from torchyard.inspect.check_reports import STYLES
from torchyard.inspect.layout import plain_table
from torchyard.model.quantity import show_count
from torchyard.report.console import printable

_LISTED = 4
"""How many findings of a rule people see; `--json` has more."""


def index_check_report(document: IndexCheckDocument) -> RenderableType:
    """Every rule that found something with some examples, a table of all, and a verdict."""
    parts: list[RenderableType] = []
    for rule in document.rules:
        parts += [*_rule(rule), ""]
    if len(document.rules) > 1:
        table = plain_table()
        table.add_column("rule", no_wrap=True)
        table.add_column("severity", no_wrap=True)
        table.add_column("found", justify="right", no_wrap=True)
        for rule in document.rules:
            severity = Text(rule.severity, style=STYLES[rule.severity])
            table.add_row(rule.rule, severity, f"{rule.count:,}")
        parts += [table, ""]
    return Group(*parts, _verdict(document))


def _rule(rule: IndexRuleDocument) -> Iterator[RenderableType]:
    count = f" ({rule.count:,})" if rule.count > 1 else ""
    head = Text.assemble((rule.severity, STYLES[rule.severity]), " ", (rule.rule, "bold"), count)
    yield head + Text(f": {rule.reason}")
    for finding in rule.findings[:_LISTED]:
        yield _indented(Text(printable(finding.where), style="bold"), 2)
        yield _indented(Text(printable(finding.what)), 4)
    if rule.count > _LISTED:
        yield _indented(Text(f"and {rule.count - _LISTED:,} more", style="dim"), 2)


def _indented(text: Text, indent: int) -> RenderableType:
    text.overflow = "fold"
    return Padding(text, (0, 0, 0, indent))


def _verdict(document: IndexCheckDocument) -> Text:
    found = ", ".join(show_count(n, name) for name, n in document.findings.items() if n)
    seen = show_count(document.files, "file")
    if document.projects:
        seen += f" of {show_count(document.projects, 'project')}"
    if not document.deep:
        seen += ", of which none was read (--deep)"
    if document.findings["error"]:
        return Text.assemble(("failed", "bold red"), f": {found} in {seen}")
    return Text.assemble(("passed", "bold green"), f": {found or 'nothing found'} in {seen}")
