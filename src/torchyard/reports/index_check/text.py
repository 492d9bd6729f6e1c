"""Findings of the index check, and mirrored files, for people."""

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from torchyard.model.quantity import show_count, show_size
from torchyard.publish.mirror.mirror import Fate
from torchyard.reports.check.text import STYLES
from torchyard.reports.index_check.document import (
    IndexCheckDocument,
    IndexRuleDocument,
    MirrorDocument,
)
from torchyard.reports.tables import and_more, folded, indented, number, table, word
from torchyard.terminal.console import printable

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


_DONE: Mapping[Fate, str] = {"new": "fetched", "sent": "published", "there": "was there"}
_TO_DO: Mapping[Fate, str] = {"new": "to fetch", "sent": "to publish", "there": "is there"}


def mirror_report(document: MirrorDocument) -> RenderableType:
    """Each file and what was done for it, or is to be done, then all in one line."""
    words = _DONE if document.generation else _TO_DO
    files = table((folded("file"), word("variant"), number("size"), word()))
    for one in document.files:
        size = "?" if one.bytes is None else show_size(one.bytes)
        yanked = ", yanked" if one.yanked else ""
        variant = one.variant or "all"
        files.add_row(printable(one.file), variant, size, f"{words[one.fate]}{yanked}")
    fetched = [one for one in document.files if one.fate == "new"]
    size = show_size(sum(one.bytes or 0 for one in fetched))
    done = f"generation {document.generation}" if document.generation else "nothing is done yet"
    count = show_count(len(document.files), "file")
    return Group(files, "", f"{done}: {count}, {len(fetched)} {words['new']} ({size})")
