"""What is wrong with an index, as people read it."""

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from torchyard.model.quantity import show_count, show_size
from torchyard.publish.mirror.mirror import Fate
from torchyard.reports.check.text import STYLES
from torchyard.reports.index_check.document import (
    IndexCheckDocument,
    IndexRuleDocument,
    MirrorDocument,
)
from torchyard.reports.tables import plain_table
from torchyard.terminal.console import printable

_LISTED = 4
"""How many findings of a rule people see; `--json` has more."""

_ALL_LISTED = ("index-unresolved",)
"""Rules whose findings are each to be acted upon."""


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
    listed = len(rule.findings) if rule.rule in _ALL_LISTED else _LISTED
    for finding in rule.findings[:listed]:
        yield _indented(Text(printable(finding.where), style="bold"), 2)
        yield _indented(Text(printable(finding.what)), 4)
        if finding.allowed:
            yield _indented(Text.assemble(("allowed: ", "cyan"), printable(finding.allowed)), 4)
    if rule.count > listed:
        yield _indented(Text(f"and {rule.count - listed:,} more", style="dim"), 2)


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


_DONE: Mapping[Fate, str] = {"new": "fetched", "sent": "published", "there": "was there"}
_TO_DO: Mapping[Fate, str] = {"new": "to fetch", "sent": "to publish", "there": "is there"}


def mirror_report(document: MirrorDocument) -> RenderableType:
    """Each file and what was done for it, or is to be done, then all in one line."""
    words = _DONE if document.generation else _TO_DO
    table = plain_table()
    table.add_column("file", overflow="fold")
    table.add_column("variant", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for one in document.files:
        size = "?" if one.bytes is None else show_size(one.bytes)
        yanked = ", yanked" if one.yanked else ""
        variant = one.variant or "all"
        table.add_row(printable(one.file), variant, size, f"{words[one.fate]}{yanked}")
    fetched = [one for one in document.files if one.fate == "new"]
    size = show_size(sum(one.bytes or 0 for one in fetched))
    told = f"generation {document.generation}" if document.generation else "nothing is done yet"
    count = show_count(len(document.files), "file")
    return Group(table, "", f"{told}: {count}, {len(fetched)} {words['new']} ({size})")
