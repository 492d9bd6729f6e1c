"""Findings of a check, and pages of rules, for people."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from torchyard.checks.compat.abi import abi_words
from torchyard.checks.rule import Finding, Rule, Severity
from torchyard.host.demangle import MANGLED, demangled
from torchyard.model.quantity import show_count, show_size
from torchyard.reports.check.document import CheckDocument, PackageDocument
from torchyard.terminal.tables import STYLES, and_more, folded, indented, table, word
from torchyard.terminal.untrusted import printable

_LISTED = 4
"""How many things a rule names before it only counts the others."""


def shown_symbols(document: CheckDocument) -> list[str]:
    """Return the C++ symbols in findings, to be demangled."""
    findings = (finding for package in document.packages for finding in package.findings)
    return [symbol for finding in findings for symbol in MANGLED.findall(finding.what)]


def check_report(document: CheckDocument) -> RenderableType:
    """Every package with its findings, the worst first, and a verdict over all.

    Of several packages, those without findings have one line each, in front of the others.
    """
    readable = demangled(shown_symbols(document))
    shown = [package for package in document.packages if package.findings]
    clean = [package.file for package in document.packages if not package.findings]
    if len(document.packages) == 1:
        shown, clean = document.packages, []
    parts: list[RenderableType] = [
        Text(f"{printable(file)}: nothing found", overflow="fold") for file in clean
    ]
    parts += [""] if clean else []
    for package in shown:
        parts += [Text(printable(package.file), style="bold", overflow="fold"), _facts(package), ""]
        for group in grouped(package.findings):
            parts += [*_group(group, readable), ""]
    return Group(*parts, verdict(document))


def _facts(package: PackageDocument) -> RenderableType:
    rows = ((name, printable(value)) for name, value in package_facts(package).items())
    return Padding(table((word(), folded()), rows, header=False), (0, 0, 0, 2))


def package_facts(package: PackageDocument) -> dict[str, str]:
    """Return the facts that head a package's report."""
    said = {
        "project": f"{package.name} {package.release}".strip(),
        "python": "-".join(dict.fromkeys(filter(None, (package.python, package.abi)))),
        "platform": ", ".join(package.platforms),
        "compute": package.compute,
        "ABI": abi_words(package.extension) if package.extension else "",
        "symbols": _undecided(package.undecided),
    }
    devices = [f"{code.arch} {show_size(code.bytes)}" for code in package.device]
    size = f"{show_size(package.bytes)}, {show_size(package.unpacked_bytes)} unpacked"
    libraries = len(package.libraries)
    files = f"{show_count(package.files, 'file')}, {libraries:,} of them programs or libraries"
    known = {name: value for name, value in said.items() if value}
    code = {"device code": ", ".join(devices)} if devices else {}
    return {**known, "size": size, "contents": files, **code}


def _undecided(symbols: Mapping[str, int]) -> str:
    """Return which symbols were compared with nothing, and how to do it."""
    counts = [f"{count:,} of {name}" for name, count in symbols.items()]
    rest = f" and {len(counts) - _LISTED} more" if len(counts) > _LISTED else ""
    how = "; `torchyard compat` compares torch's" if "torch" in symbols else ""
    return f"not decided: {', '.join(counts[:_LISTED])}{rest}{how}" if counts else ""


def grouped(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Findings by severity and rule, the worst first."""
    groups: dict[tuple[Severity, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.rule), []).append(finding)
    order = list(Severity)
    return [groups[key] for key in sorted(groups, key=lambda key: order.index(key[0]))]


class Thing(NamedTuple):
    """What is said of some members, or of the package if there are none."""

    members: tuple[str, ...]
    said: list[Finding]


def things(findings: Iterable[Finding]) -> list[Thing]:
    """Put together what is said of several members, and all that is said of the same ones."""
    same: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        same.setdefault((finding.what, finding.hint, finding.allowed), []).append(finding)
    said: dict[tuple[str, ...], list[Finding]] = {}
    for group in same.values():
        members = tuple(finding.member for finding in group if finding.member)
        said.setdefault(members, []).append(group[0])
    return [Thing(members, found) for members, found in said.items()]


def _group(group: Sequence[Finding], readable: Mapping[str, str]) -> Iterator[RenderableType]:
    first = group[0]
    count = f" ({len(group)})" if len(group) > 1 else ""
    yield Text.assemble((first.severity, STYLES[first.severity]), " ", (first.rule, "bold"), count)
    found = things(group)
    shown: set[str] = set()
    for members, said in found[:_LISTED]:
        for member in members[:_LISTED]:
            yield indented(member, 2, style="bold")
        yield from and_more(len(members) - _LISTED, 2)
        indent = 4 if members else 2
        for finding in said[:_LISTED]:
            what = MANGLED.sub(lambda name: readable.get(name[0], name[0]), finding.what)
            yield indented(what, indent)
            for label, text in (("to do", finding.hint), ("allowed", finding.allowed)):
                if text and text not in shown:
                    yield indented(Text.assemble((f"{label}: ", "cyan"), printable(text)), indent)
            shown |= {finding.hint, finding.allowed}
        yield from and_more(len(said) - _LISTED, indent)
    yield from and_more(len(found) - _LISTED, 2)


def verdict(document: CheckDocument) -> Text:
    """One line over all packages."""
    bad = sum(
        any(finding.severity is Severity.ERROR for finding in package.findings)
        for package in document.packages
    )
    packages = len(document.packages)
    what = (
        printable(document.packages[0].file) if packages == 1 else show_count(packages, "package")
    )
    found = ", ".join(show_count(n, name) for name, n in document.findings.items() if n)
    if bad:
        which = f" in {bad} of {what}" if packages > 1 else f" in {what}"
        return Text.assemble(("failed", "bold red"), f": {found}{which}")
    return Text.assemble(("passed", "bold green"), f": {found or 'nothing found'} in {what}")


def rule_report(rule: Rule) -> RenderableType:
    """The page of a rule, and how to let it be."""
    return Group(
        Text.assemble((rule.id, "bold"), " (", (rule.severities, STYLES[rule.severity]), ")"),
        Text(rule.reason),
        "",
        Text("\n\n".join(paragraphs(rule))),
        "",
        Text(allowing(rule)),
    )


def paragraphs(rule: Rule) -> list[str]:
    """The page without its line breaks, but for what is indented."""
    parts = re.split(r"\n\s*\n", rule.page)
    return [part if "\n " in part else part.replace("\n", " ") for part in parts]


def allowing(rule: Rule) -> str:
    """How a policy accepts what the rule finds, or gives it another severity."""
    other = Severity.WARNING if rule.severity is Severity.ERROR else Severity.ERROR
    return (
        "To accept what it finds up to a day, write into a .toml file for `--policy`:\n\n"
        f'    [[allow]]\n    rule = "{rule.id}"\n    member = "*"\n'
        '    reason = "why it is all right"\n    until = 2030-12-31\n\n'
        f'To change how bad it is:\n\n    [severity]\n    {rule.id} = "{other}"  # or off\n'
    )


def rules_report(rules: Iterable[Rule]) -> RenderableType:
    return table(
        (word("rule"), word("severity"), "why"),
        (
            (rule.id, Text(rule.severity, style=STYLES[rule.severity]), rule.reason)
            for rule in rules
        ),
    )
