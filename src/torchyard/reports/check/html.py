"""A check as one page that stands alone: verdict, findings, sizes, libraries."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from torchyard.checks.rule import Finding, Rule, Severity
from torchyard.model.quantity import show_count, show_size
from torchyard.package.contents import Contents, PackageFile
from torchyard.reports.check.document import (
    CheckDocument,
    LibraryDocument,
    PackageDocument,
)
from torchyard.reports.check.library_graph import glibc_ceiling, library_graph
from torchyard.reports.check.text import grouped, package_facts, paragraphs, things
from torchyard.reports.check.treemap import KINDS, file_kind, stored, treemap
from torchyard.reports.picture import PICTURE_FILTERS, SvgPicture
from torchyard.reports.templates import Filters, render_template

_WIDE, _NARROW = (1200, 620), (366, 620)
"""Pictures are drawn twice: for screens and for telephones."""
_LARGEST = 12
_LISTED = 25
_MANY = 30
"""A table with more rows is shown on demand."""
_FEW = 3
"""More files than these are shown on demand."""
_SIGNS = {Severity.ERROR: "✗", Severity.WARNING: "!", Severity.NOTE: "i"}


class _Article(NamedTuple):
    """A package on the page, and its pictures: each for wide screens and for narrow ones."""

    id: str
    package: PackageDocument
    largest: list[PackageFile]
    maps: tuple[SvgPicture, ...]
    graphs: tuple[SvgPicture, ...]

    @property
    def sections(self) -> list[str]:
        """The titles of the sections that have something to show."""
        shown = {
            "Findings": True,
            "Sizes": bool(self.maps),
            "Device code": bool(self.package.device),
            "Libraries": bool(self.graphs),
        }
        return [title for title, is_shown in shown.items() if is_shown]


def check_page(
    document: CheckDocument, contents: Sequence[Contents], rules: Mapping[str, Rule]
) -> str:
    """Write the page; `contents` are the packages of the document, in its order."""
    articles = [
        _article(f"p{number}", package, list(inside.files.values()))
        for number, (package, inside) in enumerate(
            zip(document.packages, contents, strict=True), start=1
        )
    ]
    count = show_count(len(articles), "package")
    return render_template(
        "check.html",
        _FILTERS,
        title=articles[0].package.file if len(articles) == 1 else count,
        document=document,
        articles=articles,
        rules=rules,
        kinds=KINDS,
        signs=_SIGNS,
        few=_FEW,
        listed=_LISTED,
        many=_MANY,
    )


def _article(identifier: str, package: PackageDocument, files: Sequence[PackageFile]) -> _Article:
    maps = [treemap(files, *size) for size in (_WIDE, _NARROW) if files]
    graphs = [library_graph(package, width) for width, _ in (_WIDE, _NARROW) if package.libraries]
    largest = sorted(files, key=stored, reverse=True)[:_LARGEST]
    return _Article(identifier, package, largest, tuple(maps), tuple(graphs))


def _has_failed(package: PackageDocument) -> bool:
    return any(finding.severity is Severity.ERROR for finding in package.findings)


def _counts(findings: Iterable[Finding]) -> str:
    numbers = Counter(finding.severity for finding in findings)
    counts = [show_count(numbers[one], one.value) for one in Severity if numbers[one]]
    return ", ".join(counts) or "nothing found"


def _facts(package: PackageDocument) -> list[tuple[str, str]]:
    said = package_facts(package)
    if package.device:
        said["device code"] = ", ".join(code.arch for code in package.device)
    return list(said.items())


def _cells(library: LibraryDocument, outside: Mapping[str, str]) -> tuple[str, str, str]:
    """What a library needs, its rpath, and its device code."""
    needed = (
        f"✗ {name} (not found)" if outside.get(name) == "" else name for name in library.needed
    )
    rpath = [f"RPATH {library.rpath}"] if library.rpath else []
    rpath += [library.runpath] if library.runpath else []
    device = ", ".join(code.arch for code in library.device)
    return ", ".join(needed), " ".join(rpath).replace(":", ": "), device


_FILTERS: Filters = {
    **PICTURE_FILTERS,
    "cells": _cells,
    "counts": _counts,
    "facts": _facts,
    "failed": _has_failed,
    "file_kind": file_kind,
    "glibc": glibc_ceiling,
    "grouped": grouped,
    "paragraphs": paragraphs,
    "pieces": re.compile(r"`([^`]+)`").split,  # every second one is code
    "size": show_size,
    "stored": stored,
    "things": things,
}
