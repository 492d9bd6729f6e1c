"""Differences of two packages, as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from torchyard.checks.checked import natural
from torchyard.checks.compare import LibraryChange, Moved, PackageDiff, Rewritten, Sizes
from torchyard.host.demangle import demangled
from torchyard.model.quantity import show_count, show_size
from torchyard.terminal.progress import shorten
from torchyard.terminal.tables import Lines, and_more, folded, indented, number, table, word
from torchyard.terminal.untrusted import printable

_LISTED = 4
"""The most items to name in a summary; others are counted."""

_FIELDS = 6
"""The most fields of metadata to show."""

_Moves = Literal["exports", "needed", "needs"]
_Way = Literal["removed", "added"]
_WAYS: tuple[_Way, ...] = ("removed", "added")
_WORDS = ("gone", "new")
_SIZES = ("before", "after", "change")
_LONG = 160
"""The longest name to show; C++ templates differ at their ends."""


def diff_text(comparison: PackageDiff, *, everything: bool = False) -> Lines:
    """Show the differences; symbols are demangled."""
    most = _most(everything=everything)
    readable = demangled(_symbols(comparison, most))
    parts: list[RenderableType] = [_heading(comparison), ""]
    if comparison.is_equal:
        parts += [Text(f"all {show_count(comparison.same, 'file')} are the same"), ""]
    else:
        parts += [_members(comparison, most), ""]
    if comparison.metadata:
        fields = comparison.metadata if everything else comparison.metadata[:_FIELDS]
        parts += [Text("metadata", style="bold"), *_texts(fields, most)]
        parts += [*and_more(len(comparison.metadata) - len(fields), 2), ""]
    if comparison.device:
        parts += [_device_table(comparison.device), ""]
    if everything:
        for library in _by_growth(comparison):
            lines = list(_library(library, readable))
            if lines:
                parts += [Text(printable(library.name), style="bold", overflow="fold"), *lines, ""]
    elif comparison.libraries:
        parts += [*_libraries(comparison, readable), ""]
    if not everything and not comparison.is_equal:
        parts += [Text("--all lists everything", style="dim"), ""]
    return iter(parts[:-1])


def _symbols(comparison: PackageDiff, most: int | None) -> list[str]:
    """Return the symbols to demangle for the report."""
    moved = (tuple(_counted(comparison, "exports", way))[:most] for way in _WAYS)
    return list(chain(*moved))


def _most(*, everything: bool) -> int | None:
    return None if everything else _LISTED


def _by_growth(comparison: PackageDiff) -> list[LibraryChange]:
    return sorted(comparison.libraries, key=lambda part: -abs(part.size.grown))


def _heading(comparison: PackageDiff) -> RenderableType:
    size, unpacked = comparison.size, comparison.unpacked
    rows = (
        (comparison.before, size.before, unpacked.before),
        (comparison.after, size.after, unpacked.after),
    )
    return table(
        (folded("package"), number("size"), number("unpacked")),
        ((printable(name), *map(show_size, sizes)) for name, *sizes in rows),
    )


def _members(comparison: PackageDiff, most: int | None) -> Table:
    files = table((folded("file"), *map(number, _SIZES)))
    groups = {
        "removed": {name: Sizes(size, 0) for name, size in comparison.removed.items()},
        "added": {name: Sizes(0, size) for name, size in comparison.added.items()},
        "changed": comparison.changed,
    }
    for what, members in groups.items():
        largest = sorted(members, key=lambda name: (-abs(members[name].grown), name))
        total = Sizes(
            sum(sizes.before for sizes in members.values()),
            sum(sizes.after for sizes in members.values()),
        )
        if members:
            files.add_row(
                f"{show_count(len(members), 'file')} {what}", *_sizes(total), style="bold"
            )
        for name in largest[:most]:
            files.add_row(Text(f"  {printable(name)}"), *_sizes(members[name]))
        if most is not None and len(members) > most:
            files.add_row(Text(f"  and {len(members) - most:,} more", style="dim"))
    files.add_row(f"{show_count(comparison.same, 'file')} the same", style="bold")
    return files


def _device_table(rows: Mapping[str, Sizes]) -> Table:
    """Return a table with a row for each architecture, in numerical order."""
    return _size_table("device code", {arch: rows[arch] for arch in sorted(rows, key=natural)})


def _section_table(rows: Mapping[str, Sizes]) -> Table:
    """Return a table of sections, the most changed sizes first."""
    most = sorted(rows, key=lambda name: (-abs(rows[name].grown), name))
    return _size_table("section", {name: rows[name] for name in most})


def _size_table(title: str, rows: Mapping[str, Sizes]) -> Table:
    return table(
        (word(title), *map(number, _SIZES)),
        ((Text(printable(name)), *_sizes(sizes)) for name, sizes in rows.items()),
    )


def _sizes(sizes: Sizes) -> tuple[str, str, str]:
    before, after = (show_size(size) if size else "·" for size in (sizes.before, sizes.after))
    sign = "+" if sizes.grown >= 0 else "-"
    return before, after, f"{sign}{show_size(abs(sizes.grown))}" if sizes.grown else "="


def _libraries(comparison: PackageDiff, readable: Mapping[str, str]) -> Iterator[RenderableType]:
    """Yield the most changed libraries, and removals and additions in all of them."""
    largest = table((folded("library"), *map(number, ("size", "exports gone", "new"))))
    changed = [library for library in _by_growth(comparison) if _differs(library)]
    for library in changed[:_LISTED]:
        counts = (f"{len(names):,}" if names else "·" for names in _both(library.exports))
        largest.add_row(Text(printable(library.name)), _sizes(library.size)[2], *counts)
    if len(changed) > _LISTED:
        largest.add_row(Text(f"and {len(changed) - _LISTED:,} more", style="dim"))
    if changed:
        yield largest
    kinds: tuple[tuple[str, _Moves, Mapping[str, str]], ...] = (
        ("libraries need", "needed", {}),
        ("libraries need versions", "needs", {}),
        ("libraries export", "exports", readable),
    )
    for what, kind, names in kinds:
        moved = [_counted(comparison, kind, way) for way in _WAYS]
        words = (f"{len(part):,} {word}" for part, word in zip(moved, _WORDS, strict=True) if part)
        summary = ", ".join(words)
        if summary:
            yield ""
            yield Text(f"{what}: {summary}", style="bold")
        for sign, part in zip("-+", moved, strict=True):
            shown = {name: _where(names.get(name, name), where) for name, where in part.items()}
            yield from _listed(list(part), sign, shown, _LISTED, 2)


def _differs(library: LibraryChange) -> bool:
    """Return whether a summary lists a library."""
    moved = (library.exports, library.needed, library.needs)
    return bool(library.size.grown or any(any(_both(part)) for part in moved) or library.texts)


def _both(moved: Moved) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return moved.removed, moved.added


def _counted(comparison: PackageDiff, kind: _Moves, way: _Way) -> dict[str, list[str]]:
    """Return items that libraries lost or gained, with the libraries; the most common first."""
    found: dict[str, list[str]] = {}
    for library in comparison.libraries:
        moved: Moved = getattr(library, kind)
        for name in moved.removed if way == "removed" else moved.added:
            found.setdefault(name, []).append(library.name)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def _where(name: str, libraries: Sequence[str]) -> str:
    first, *others = (library.rpartition("/")[2] for library in libraries)
    more = f" and {len(others):,} more" if others else ""
    return f"{shorten(name, _LONG)} ({first}{more})"


def _library(change: LibraryChange, readable: Mapping[str, str]) -> Iterator[RenderableType]:
    yield from _texts(change.texts, None)
    for what, moved in (("needs", change.needed), ("needs versions", change.needs)):
        yield from _moved(what, moved, {})
    yield from _moved("exports", change.exports, readable)
    if change.sections:
        yield indented(_section_table(change.sections), 2)
    if change.device:
        yield indented(_device_table(change.device), 2)


def _moved(what: str, moved: Moved, readable: Mapping[str, str]) -> Iterator[RenderableType]:
    both = _both(moved)
    counts = [f"{len(names):,} {word}" for word, names in zip(_WORDS, both, strict=True) if names]
    if counts:
        yield indented(f"{what}: {', '.join(counts)}", 2)
    for sign, names in zip("-+", both, strict=True):
        shown = {name: shorten(readable.get(name, name), _LONG) for name in names}
        yield from _listed(names, sign, shown, None)


def _listed(
    names: Sequence[str],
    sign: str,
    shown: Mapping[str, str],
    most: int | None,
    indent: int = 4,
) -> Iterator[RenderableType]:
    """Yield the first names, and the number of others."""
    for name in names[:most]:
        yield indented(f"{sign} {shown.get(name, name)}", indent)
    yield from and_more(len(names) - most if most is not None else 0, indent)


def _texts(texts: Iterable[Rewritten], most: int | None) -> Iterator[RenderableType]:
    for text in texts:
        yield indented(f"{text.name}:", 2)
        old, new = text.before.splitlines(), text.after.splitlines()
        for sign, lines, others in (("-", old, new), ("+", new, old)):
            unique = [line for line in lines if line not in others]
            yield from _listed(unique, sign, {line: shorten(line, _LONG) for line in unique}, most)
