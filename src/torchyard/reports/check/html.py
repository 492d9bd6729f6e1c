"""A check as one page that stands alone: verdict, findings, sizes, libraries."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from string import Template

from torchyard.checks.rule import Rule, Severity
from torchyard.host.files import read_data
from torchyard.model.quantity import show_count, show_size
from torchyard.package.contents import Contents, File
from torchyard.reports.check.document import (
    CheckDocument,
    FindingDocument,
    LibraryDocument,
    PackageDocument,
)
from torchyard.reports.check.library_graph import glibc_ceiling, library_graph
from torchyard.reports.check.text import Thing, facts, grouped, paragraphs, things
from torchyard.reports.check.treemap import KINDS, kind_of, stored, treemap

_WIDE, _NARROW = (1200, 620), (366, 620)
"""Pictures are drawn twice: for screens and for telephones."""
_LARGEST = 12
_LISTED = 25
_MANY = 30
"""A table with more rows is shown on demand."""
_OPEN = 3
"""More files than these are shown on demand."""
_SIGNS = {Severity.ERROR: "✗", Severity.WARNING: "!", Severity.NOTE: "i"}
_FAILED, _PASSED = "✗ failed", "✓ passed"


def check_page(
    document: CheckDocument, contents: Sequence[Contents], rules: Mapping[str, Rule]
) -> str:
    """Write the page; `contents` are the packages of the document, in its order."""
    packages = list(zip(document.packages, contents, strict=True))
    title = packages[0][0].file if len(packages) == 1 else show_count(len(packages), "package")
    body = [*_overview(document)] if len(packages) > 1 else []
    for number, (package, inside) in enumerate(packages, start=1):
        body.append(_article(f"p{number}", package, list(inside.files.values()), rules))
    body.append(
        f"<footer>Made by torchyard {escape(document.torchyard)} on {document.date} with the "
        f"policy <code>{escape(document.policy)}</code>. Sizes are in powers of ten.</footer>"
    )
    page = Template(read_data("report.html"))
    return page.substitute(title=escape(f"{title}: check"), body="\n".join(body))


def _overview(document: CheckDocument) -> Iterator[str]:
    yield f"<h1>{show_count(len(document.packages), 'package')}</h1><ul class='overview'>"
    for number, package in enumerate(document.packages, start=1):
        yield (
            f"<li>{_verdict(package)} <a class='path' href='#p{number}'>{escape(package.file)}</a>"
            f" <span class='soft'>{_counts(package.findings)}</span></li>"
        )
    yield "</ul>"


def _verdict(package: PackageDocument) -> str:
    failed = any(finding.severity is Severity.ERROR for finding in package.findings)
    tone, text = ("error", _FAILED) if failed else ("good", _PASSED)
    return f"<span class='verdict {tone}'>{text}</span>"


def _counts(findings: Iterable[FindingDocument]) -> str:
    severities = [finding.severity for finding in findings]
    counts = [
        show_count(severities.count(severity), severity.value)
        for severity in Severity
        if severity in severities
    ]
    return ", ".join(counts) or "nothing found"


def _article(
    anchor: str, package: PackageDocument, files: Sequence[File], rules: Mapping[str, Rule]
) -> str:
    sections = {
        "Findings": _findings(package, rules),
        "Sizes": _sizes(files),
        "Device code": _device(package),
        "Libraries": _libraries(package),
    }
    there = {title: text for title, text in sections.items() if text}
    links = "".join(f"<li><a href='#{anchor}-{_slug(t)}'>{t}</a></li>" for t in there)
    parts = [f"<h2 id='{anchor}-{_slug(t)}'>{t}</h2>{text}" for t, text in there.items()]
    return (
        f"<article id='{anchor}'><h1>{escape(package.file)}</h1>"
        f"<p>{_verdict(package)} <span class='soft'>{_counts(package.findings)}</span></p>"
        f"{_facts(package)}<nav aria-label='Sections'><ul>{links}</ul></nav>"
        f"{''.join(parts)}</article>"
    )


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")


def _facts(package: PackageDocument) -> str:
    said = facts(package)
    if package.device:
        said["device code"] = ", ".join(code.arch for code in package.device)
    cells = "".join(
        f"<div{' class=wide' if name == 'device code' else ''}>"
        f"<dt>{name}</dt><dd>{escape(value)}</dd></div>"
        for name, value in said.items()
    )
    return f"<dl class='facts'>{cells}</dl>"


def _findings(package: PackageDocument, rules: Mapping[str, Rule]) -> str:
    if not package.findings:
        return "<p>No rule found anything.</p>"
    return "".join(_finding(group, rules) for group in grouped(package.findings))


def _finding(group: Sequence[FindingDocument], rules: Mapping[str, Rule]) -> str:
    severity, rule = group[0].severity, rules.get(group[0].rule)
    found = things(group)
    hints = {finding.hint for finding in group}
    shared = _note("To do", group[0].hint) if len(hints) == 1 else ""
    items = "".join(_thing(thing, hints=not shared) for thing in found[:_LISTED])
    count = f" <small>{len(group):,} times</small>" if len(group) > 1 else ""
    about = ""
    if rule:
        about = f"<details class='about'><summary>About this rule</summary>{_page(rule)}</details>"
    reason = f"<br><span class='soft'>{_marked(rule.reason)}</span>" if rule else ""
    return (
        f"<details class='finding {severity}'{'' if severity is Severity.NOTE else ' open'}>"
        f"<summary><span class='sign'>{_SIGNS[severity]} {severity}</span>"
        f"<code>{escape(group[0].rule)}</code>{count}{reason}</summary>"
        f"<ul>{items}{_more(len(found))}</ul>{shared}{about}</details>"
    )


def _thing(thing: Thing, *, hints: bool) -> str:
    """Members, and all that is said of them; many members are shown on demand."""
    said = "".join(
        f"<p>{_marked(finding.what)}</p>"
        f"{_note('To do', finding.hint if hints else '')}{_note('Allowed', finding.allowed)}"
        for finding in thing.said[:_LISTED]
    )
    rest = f"<p class='soft'>and {len(thing.said) - _LISTED:,} more</p>"
    said += rest if len(thing.said) > _LISTED else ""
    listed = [f"<span class='path'>{escape(member)}</span>" for member in thing.members]
    if len(listed) <= _OPEN:
        return f"<li>{'<br>'.join(listed)}{said}</li>"
    items = "".join(f"<li>{member}</li>" for member in listed[:_LISTED])
    return (
        f"<li><details><summary>{len(listed):,} files</summary>"
        f"<ul>{items}{_more(len(listed))}</ul></details>{said}</li>"
    )


def _more(number: int) -> str:
    return f"<li class='soft'>and {number - _LISTED:,} more</li>" if number > _LISTED else ""


def _note(label: str, text: str) -> str:
    return f"<p class='todo'><strong>{label}:</strong> {_marked(text)}</p>" if text else ""


def _marked(text: str) -> str:
    """Text with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _page(rule: Rule) -> str:
    text = "".join(f"<p>{_marked(part)}</p>" for part in paragraphs(rule))
    return f"{text}<p class='soft'><code>torchyard explain rule {rule.id}</code></p>"


def _sizes(files: Sequence[File]) -> str:
    if not files:
        return ""
    largest = sorted(files, key=stored, reverse=True)[:_LARGEST]
    legend = "".join(f"<li><i class='{kind}'></i>{name}</li>" for kind, name in KINDS.items())
    rows = "".join(
        f"<tr><th scope='row' class='path'>{escape(file.name)}</th>"
        f"<td class='wide-only'>{KINDS[kind_of(file)]}</td>"
        f"<td class='number'>{show_size(stored(file))}</td>"
        f"<td class='number'>{show_size(file.size)}</td></tr>"
        for file in largest
    )
    heads = "<th scope='col' class='wide-only'>kind</th>" + "".join(
        f"<th scope='col' class='number'>{head}</th>" for head in ("stored", "unpacked")
    )
    return (
        f"<ul class='legend'>{legend}</ul>"
        f"<div class='wide-only'>{treemap(files, *_WIDE)}</div>"
        f"<div class='narrow'>{treemap(files, *_NARROW)}</div>"
        f"<h3>Largest files</h3>{_scrolling('Largest files')}<table><thead><tr>"
        f"<th scope='col'>file</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _scrolling(label: str) -> str:
    """The start of a place that is scrolled by itself, also with the keyboard."""
    return f"<div class='scroll' tabindex='0' role='region' aria-label='{label}'>"


def _device(package: PackageDocument) -> str:
    if not package.device:
        return ""
    largest = max(code.bytes for code in package.device) or 1
    rows = "".join(
        f"<tr><th scope='row'><code>{escape(code.arch)}</code></th>"
        f"<td class='wide-only'>{code.kind}</td>"
        f"<td class='number wide-only'>{code.programs:,}</td>"
        f"<td class='number'>{show_size(code.bytes)}</td>"
        f"<td class='bar'><span style='width:{100 * code.bytes / largest:.1f}%'></span></td></tr>"
        for code in package.device
    )
    return (
        f"{_scrolling('Device code')}<table><thead><tr><th scope='col'>architecture</th>"
        "<th scope='col' class='wide-only'>kind</th>"
        "<th scope='col' class='number wide-only'>programs</th>"
        "<th scope='col' class='number'>size</th><td></td></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _libraries(package: PackageDocument) -> str:
    if not package.libraries:
        return ""
    left = "".join(f"<th scope='col'>{head}</th>" for head in ("file", "needs", "rpath", "device"))
    right = "".join(
        f"<th scope='col' class='number'>{head}</th>" for head in ("glibc", "exports", "size")
    )
    rows = "".join(_library_row(library, package.outside) for library in package.libraries)
    many = len(package.libraries) > _MANY
    return (
        f"<div class='wide-only card'>{library_graph(package, _WIDE[0])}</div>"
        f"<div class='narrow card'>{library_graph(package, _NARROW[0])}</div>"
        f"<details class='all'{'' if many else ' open'}><summary>All "
        f"{len(package.libraries):,} programs and libraries as a table</summary>"
        f"{_scrolling('Programs and libraries')}<table class='libraries'><thead>"
        f"<tr>{left}{right}</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def _library_row(library: LibraryDocument, outside: Mapping[str, str]) -> str:
    needed = ", ".join(
        f"✗ {name} (not found)" if outside.get(name) == "" else name for name in library.needed
    )
    rpath = [f"RPATH {library.rpath}"] if library.rpath else []
    rpath += [library.runpath] if library.runpath else []
    device = ", ".join(code.arch for code in library.device)
    left = "".join(
        f"<td class='path'>{escape(cell) or '·'}</td>"
        for cell in (needed, " ".join(rpath).replace(":", ": "), device)
    )
    glibc = glibc_ceiling(library).removeprefix("glibc ") or "·"
    right = "".join(
        f"<td class='number'>{cell}</td>"
        for cell in (escape(glibc), f"{library.exports:,}", show_size(library.bytes))
    )
    return f"<tr><th scope='row' class='path'>{escape(library.member)}</th>{left}{right}</tr>"
