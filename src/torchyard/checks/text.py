"""Checked packages and their findings as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from torchyard.checks.checked import CheckedPackage
from torchyard.checks.compat.abi import abi_words
from torchyard.checks.rule import Finding, Severity
from torchyard.host.demangle import MANGLED, demangled
from torchyard.model.quantity import show_count, show_size
from torchyard.terminal.tables import (
    STYLES,
    Lines,
    and_more,
    assembled,
    folded,
    indented,
    styled,
    table,
    word,
)
from torchyard.terminal.untrusted import printable

_LISTED = 4
"""The number of items that a rule names; further ones are only counted."""


def packages_text(packages: Sequence[CheckedPackage]) -> Lines:
    """Yield every package with its findings, worst first, and a verdict.

    Packages without findings have one line each, before the others.
    """
    readable = demangled(list(_symbols(packages)))
    shown = [package for package in packages if package.findings]
    clean = [package.file for package in packages if not package.findings]
    if len(packages) == 1:
        shown, clean = list(packages), []
    yield from (styled(f"{printable(file)}: nothing found") for file in clean)
    if clean:
        yield ""
    for package in shown:
        yield styled(printable(package.file), "bold")
        facts = ((name, printable(value)) for name, value in package_facts(package).items())
        yield indented(table((word(), folded()), facts, header=False), 2)
        yield ""
        for group in grouped(package.findings):
            yield from _group(group, readable)
            yield ""
    yield from _verdict(packages)


def _symbols(packages: Iterable[CheckedPackage]) -> Iterator[str]:
    """Yield the C++ symbols in findings, for demangling."""
    for package in packages:
        for finding in package.findings:
            yield from MANGLED.findall(finding.what)


def package_facts(package: CheckedPackage) -> dict[str, str]:
    """Return the facts that head a package's report."""
    facts = {
        "project": f"{package.name} {package.release}".strip(),
        "python": "-".join(dict.fromkeys(filter(None, (package.python, package.abi)))),
        "platform": ", ".join(package.platforms),
        "compute": package.compute,
        "ABI": abi_words(package.extension) if package.extension else "",
        "symbols": _undecided(package.undecided),
    }
    devices = [f"{code.arch} {show_size(code.size)}" for code in package.device]
    size = f"{show_size(package.bytes)}, {show_size(package.unpacked_bytes)} unpacked"
    libraries = len(package.libraries)
    files = f"{show_count(package.files, 'file')}, {libraries:,} of them programs or libraries"
    fields = {name: value for name, value in facts.items() if value}
    code = {"device code": ", ".join(devices)} if devices else {}
    return {**fields, "size": size, "contents": files, **code}


def _undecided(symbols: Mapping[str, int]) -> str:
    """Return which symbols are undecided, and how to compare them."""
    counts = [f"{count:,} of {name}" for name, count in symbols.items()]
    rest = f" and {len(counts) - _LISTED} more" if len(counts) > _LISTED else ""
    how = "; `torchyard compat` compares torch's" if "torch" in symbols else ""
    return f"not decided: {', '.join(counts[:_LISTED])}{rest}{how}" if counts else ""


def grouped(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Yield findings by severity and rule, worst first."""
    groups: dict[tuple[Severity, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.rule), []).append(finding)
    order = list(Severity)
    return [groups[key] for key in sorted(groups, key=lambda key: order.index(key[0]))]


class MemberFindings(NamedTuple):
    """Findings about the same members, or about the package if there are none."""

    members: tuple[str, ...]
    findings: list[Finding]


def by_members(findings: Iterable[Finding]) -> list[MemberFindings]:
    """Group findings by message, then by member."""
    same: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        same.setdefault((finding.what, finding.hint, finding.allowed), []).append(finding)
    found: dict[tuple[str, ...], list[Finding]] = {}
    for group in same.values():
        members = tuple(finding.member for finding in group if finding.member)
        found.setdefault(members, []).append(group[0])
    return [MemberFindings(members, group) for members, group in found.items()]


def _group(group: Sequence[Finding], readable: Mapping[str, str]) -> Lines:
    first = group[0]
    count = f" ({len(group)})" if len(group) > 1 else ""
    yield assembled((first.severity, STYLES[first.severity]), " ", (first.rule, "bold"), count)
    found = by_members(group)
    shown: set[str] = set()
    for members, findings in found[:_LISTED]:
        for member in members[:_LISTED]:
            yield indented(member, 2, style="bold")
        yield from and_more(len(members) - _LISTED, 2)
        indent = 4 if members else 2
        for finding in findings[:_LISTED]:
            what = MANGLED.sub(lambda name: readable.get(name[0], name[0]), finding.what)
            yield indented(what, indent)
            for label, text in (("to do", finding.hint), ("allowed", finding.allowed)):
                if text and text not in shown:
                    yield indented(assembled((f"{label}: ", "cyan"), printable(text)), indent)
            shown |= {finding.hint, finding.allowed}
        yield from and_more(len(findings) - _LISTED, indent)
    yield from and_more(len(found) - _LISTED, 2)


def count_findings(packages: Iterable[CheckedPackage]) -> dict[str, int]:
    """Return the number of findings of each severity."""
    severities = [finding.severity for package in packages for finding in package.findings]
    return {severity.value: severities.count(severity) for severity in Severity}


def _verdict(packages: Sequence[CheckedPackage]) -> Lines:
    """Yield a line about all packages."""
    bad = sum(bool(package.errors) for package in packages)
    many = len(packages)
    what = printable(packages[0].file) if many == 1 else show_count(many, "package")
    counts = count_findings(packages)
    found = ", ".join(show_count(count, name) for name, count in counts.items() if count)
    if bad:
        which = f" in {bad} of {what}" if many > 1 else f" in {what}"
        yield assembled(("failed", "bold red"), f": {found}{which}")
    else:
        yield assembled(("passed", "bold green"), f": {found or 'nothing found'} in {what}")
