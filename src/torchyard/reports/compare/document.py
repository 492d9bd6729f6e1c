"""What `torchyard diff --json` prints."""

from collections.abc import Iterable, Mapping
from typing import Literal

from torchyard.checks.compare import (
    Answer,
    Comparison,
    LibraryChange,
    Moved,
    Rewritten,
    Sizes,
)
from torchyard.reports.document import Document


class SizesDocument(Document, kw_only=True):
    """Bytes of the same thing in both packages; 0 where it is not there."""

    before: int
    after: int


class MovedDocument(Document, kw_only=True):
    """What only the first has, and what only the second."""

    removed: list[str]
    added: list[str]


class TextDocument(Document, kw_only=True):
    """A text of both, where it differs."""

    name: str
    before: str
    after: str


class LibraryChangeDocument(Document, kw_only=True):
    """A library that is in both packages, and not the same; only what differs is listed."""

    member: str
    bytes: SizesDocument
    sections: dict[str, SizesDocument]
    device: dict[str, SizesDocument]
    exports: MovedDocument
    needed: MovedDocument
    version_needs: MovedDocument
    fields: list[TextDocument]


class AnswerDocument(Document, kw_only=True):
    """Whether an extension built against the first package loads with the second.

    `linked` are the first package's libraries that it needs, `uses` counts their symbols.
    """

    extension: str
    loads: bool
    binaries: int
    linked: list[str]
    uses: int
    reasons: list[str]
    missing_symbols: list[str]


class CompareDocument(Document, kw_only=True):
    """`torchyard diff --json`: `removed` and `added` are members with their sizes."""

    version: Literal[1] = 1
    before: str
    after: str
    bytes: SizesDocument
    unpacked_bytes: SizesDocument
    same: int
    removed: dict[str, int]
    added: dict[str, int]
    changed: dict[str, SizesDocument]
    libraries: list[LibraryChangeDocument]
    device: dict[str, SizesDocument]
    metadata: list[TextDocument]
    extension: AnswerDocument | None


COMPARE_REPORTS: dict[str, type[Document]] = {"diff": CompareDocument}


def compare_document(comparison: Comparison, answer: Answer | None) -> CompareDocument:
    return CompareDocument(
        before=comparison.before,
        after=comparison.after,
        bytes=_sizes(comparison.size),
        unpacked_bytes=_sizes(comparison.unpacked),
        same=comparison.same,
        removed=comparison.removed,
        added=comparison.added,
        changed=_table(comparison.changed),
        libraries=[_library(library) for library in comparison.libraries],
        device=_table(comparison.device),
        metadata=_texts(comparison.metadata),
        extension=_answer(answer) if answer else None,
    )


def _library(change: LibraryChange) -> LibraryChangeDocument:
    return LibraryChangeDocument(
        member=change.name,
        bytes=_sizes(change.size),
        sections=_table(change.sections),
        device=_table(change.device),
        exports=_moved(change.exports),
        needed=_moved(change.needed),
        version_needs=_moved(change.needs),
        fields=_texts(change.texts),
    )


def _answer(answer: Answer) -> AnswerDocument:
    return AnswerDocument(
        extension=answer.extension,
        loads=answer.loads,
        binaries=answer.binaries,
        linked=list(answer.linked),
        uses=answer.uses,
        reasons=list(answer.reasons),
        missing_symbols=list(answer.symbols),
    )


def _sizes(sizes: Sizes) -> SizesDocument:
    return SizesDocument(before=sizes.before, after=sizes.after)


def _table(table: Mapping[str, Sizes]) -> dict[str, SizesDocument]:
    return {name: _sizes(sizes) for name, sizes in table.items()}


def _moved(moved: Moved) -> MovedDocument:
    return MovedDocument(removed=list(moved.removed), added=list(moved.added))


def _texts(texts: Iterable[Rewritten]) -> list[TextDocument]:
    return [TextDocument(name=t.name, before=t.before, after=t.after) for t in texts]
