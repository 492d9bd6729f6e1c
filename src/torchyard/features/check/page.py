"""A check as a self-contained page: verdict, findings, sizes, libraries."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from torchyard.checks.checked import CheckedLibrary, CheckedPackage
from torchyard.checks.registry import RULES
from torchyard.checks.rule import Finding, Severity, paragraphs
from torchyard.checks.text import by_members, grouped, package_facts
from torchyard.features.check.report import CheckReport
from torchyard.model.quantity import show_count, show_size
from torchyard.package.contents import Contents, PackageFile
from torchyard.reports.library_graph import glibc_ceiling, library_graph
from torchyard.reports.picture import PICTURE_FILTERS, SvgPicture
from torchyard.reports.templates import Filters, render_template
from torchyard.reports.treemap import KINDS, file_kind, stored, treemap

_WIDE, _NARROW = (1200, 620), (366, 620)
"""Widths of pictures: for screens and for phones."""
_LARGEST = 12
_LISTED = 25
_MANY = 30
"""The most rows of a table that is not collapsed."""
_FEW = 3
"""The most files to show uncollapsed."""
_SIGNS = {Severity.ERROR: "✗", Severity.WARNING: "!", Severity.NOTE: "i"}


class _Article(NamedTuple):
    """A package on the page, with pictures for wide and narrow screens."""

    id: str
    package: CheckedPackage
    largest: list[PackageFile]
    maps: tuple[SvgPicture, ...]
    graphs: tuple[SvgPicture, ...]

    @property
    def sections(self) -> list[str]:
        """The titles of the non-empty sections."""
        shown = {
            "Findings": True,
            "Sizes": bool(self.maps),
            "Device code": bool(self.package.device),
            "Libraries": bool(self.graphs),
        }
        return [title for title, is_shown in shown.items() if is_shown]


def check_html(report: CheckReport, contents: Sequence[Contents]) -> str:
    """Write the page; `contents` are the packages of the report, in its order."""
    articles = [
        _article(f"p{number}", package, list(inside.files.values()))
        for number, (package, inside) in enumerate(
            zip(report.packages, contents, strict=True), start=1
        )
    ]
    count = show_count(len(articles), "package")
    return render_template(
        "check.html",
        _FILTERS,
        title=articles[0].package.file if len(articles) == 1 else count,
        report=report,
        articles=articles,
        rules=RULES,
        kinds=KINDS,
        signs=_SIGNS,
        few=_FEW,
        listed=_LISTED,
        many=_MANY,
    )


def _article(identifier: str, package: CheckedPackage, files: Sequence[PackageFile]) -> _Article:
    maps = [treemap(files, *size) for size in (_WIDE, _NARROW) if files]
    graphs = [library_graph(package, width) for width, _ in (_WIDE, _NARROW) if package.libraries]
    largest = sorted(files, key=stored, reverse=True)[:_LARGEST]
    return _Article(identifier, package, largest, tuple(maps), tuple(graphs))


def _counts(findings: Iterable[Finding]) -> str:
    numbers = Counter(finding.severity for finding in findings)
    counts = [show_count(numbers[s], s.value) for s in Severity if numbers[s]]
    return ", ".join(counts) or "nothing found"


def _facts(package: CheckedPackage) -> list[tuple[str, str]]:
    facts = package_facts(package)
    if package.device:
        facts["device code"] = ", ".join(code.arch for code in package.device)
    return list(facts.items())


def _cells(library: CheckedLibrary, outside: Mapping[str, str]) -> tuple[str, str, str]:
    """Return the needs of a library, its rpath, and its device code."""
    needed = (
        f"✗ {name} (not found)" if outside.get(name) == "" else name for name in library.needed
    )
    rpath = [f"RPATH {library.rpath}"] if library.rpath else []
    rpath += [library.runpath] if library.runpath else []
    device = ", ".join(code.arch for code in library.device)
    return ", ".join(needed), " ".join(rpath).replace(":", ": "), device


_FILTERS: Filters = {
    **PICTURE_FILTERS,
    "by_members": by_members,
    "cells": _cells,
    "counts": _counts,
    "facts": _facts,
    "file_kind": file_kind,
    "glibc": glibc_ceiling,
    "grouped": grouped,
    "paragraphs": paragraphs,
    "pieces": re.compile(r"`([^`]+)`").split,  # every second part is code
    "size": show_size,
    "stored": stored,
}
