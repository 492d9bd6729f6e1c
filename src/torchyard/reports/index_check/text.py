"""Findings of the index check, for people."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from torchyard.model.quantity import show_count
from torchyard.reports.check.text import STYLES
from torchyard.reports.index_check.document import (
    IndexCheckDocument,
    IndexRuleDocument,
)
from torchyard.terminal.tables import and_more, indented, number, table, word
from torchyard.terminal.untrusted import printable

_LISTED = 4
"""How many findings of a rule are shown; `--json` has more."""

_ALL_LISTED = ("index-unresolved",)
"""Rules whose findings are each to be acted upon."""


def index_check_report(document: IndexCheckDocument) -> RenderableType:
    """Every rule that found something with some examples, a table of all, and a verdict."""
    parts: list[RenderableType] = []
    for rule in document.rules:
        parts += [*_rule(rule), ""]
    if len(document.rules) > 1:
        counts = table(
            (word("rule"), word("severity"), number("found")),
            (
                (rule.rule, Text(rule.severity, style=STYLES[rule.severity]), f"{rule.count:,}")
                for rule in document.rules
            ),
        )
        parts += [counts, ""]
    return Group(*parts, _verdict(document))


def _rule(rule: IndexRuleDocument) -> Iterator[RenderableType]:
    count = f" ({rule.count:,})" if rule.count > 1 else ""
    head = Text.assemble((rule.severity, STYLES[rule.severity]), " ", (rule.rule, "bold"), count)
    yield head + Text(f": {rule.reason}")
    listed = len(rule.findings) if rule.rule in _ALL_LISTED else _LISTED
    for finding in rule.findings[:listed]:
        yield indented(finding.where, 2, style="bold")
        yield indented(finding.what, 4)
        if finding.allowed:
            yield indented(Text.assemble(("allowed: ", "cyan"), printable(finding.allowed)), 4)
    yield from and_more(rule.count - listed, 2)


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
