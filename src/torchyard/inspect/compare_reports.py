"""Two packages side by side, as people read it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from torchyard.checks.compare import Answer, Comparison, LibraryChange, Moved, Rewritten, Sizes
from torchyard.inspect.check_documents import natural
from torchyard.inspect.layout import plain_table
from torchyard.model.quantity import show_count, show_size
from torchyard.report.board import shorten
from torchyard.report.console import printable

_LISTED = 8
"""How many things are named before the others are only counted."""

_LONG = 160
"""Names of templates can be longer than anybody reads; what tells them apart is at their ends."""


def compare_report(
    comparison: Comparison, answer: Answer | None, readable: Mapping[str, str]
) -> RenderableType:
    """All that is different, and whether the extension minds; symbols are shown as readable."""
    parts: list[RenderableType] = [_heading(comparison), ""]
    if comparison.is_equal:
        parts += [Text(f"all {show_count(comparison.same, 'file')} are the same"), ""]
    else:
        parts += [_members(comparison), ""]
    if comparison.metadata:
        parts += [Text("metadata", style="bold"), *_texts(comparison.metadata), ""]
    if comparison.device:
        parts += [_device_table(comparison.device), ""]
    for library in sorted(comparison.libraries, key=lambda one: -abs(one.size.grown)):
        told = list(_library(library, readable))
        if told:
            parts += [Text(printable(library.name), style="bold", overflow="fold"), *told, ""]
    if answer:
        parts += [*_answer(answer, readable), ""]
    return Group(*parts[:-1])


def shown_symbols(comparison: Comparison, answer: Answer | None) -> list[str]:
    """The symbols that the report names, for somebody to make readable."""
    moved = (library.exports for library in comparison.libraries)
    lists = [names[:_LISTED] for both in moved for names in both]
    return list(chain(*lists, answer.symbols[:_LISTED] if answer else ()))


def _heading(comparison: Comparison) -> RenderableType:
    table = plain_table()
    table.add_column("package", overflow="fold")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("unpacked", justify="right", no_wrap=True)
    for number, name in enumerate((comparison.before, comparison.after)):
        sizes = comparison.size[number], comparison.unpacked[number]
        table.add_row(printable(name), *map(show_size, sizes))
    return table


def _members(comparison: Comparison) -> Table:
    table = plain_table()
    table.add_column("file", overflow="fold")
    for heading in ("before", "after", "change"):
        table.add_column(heading, justify="right", no_wrap=True)
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
            table.add_row(
                f"{show_count(len(members), 'file')} {what}", *_sizes(total), style="bold"
            )
        for name in largest[:_LISTED]:
            table.add_row(Text(f"  {printable(name)}"), *_sizes(members[name]))
        if len(members) > _LISTED:
            table.add_row(Text(f"  and {len(members) - _LISTED:,} more", style="dim"))
    table.add_row(f"{show_count(comparison.same, 'file')} the same", style="bold")
    return table


def _device_table(rows: Mapping[str, Sizes]) -> Table:
    """Every architecture, as people count them."""
    return _size_table("device code", {arch: rows[arch] for arch in sorted(rows, key=natural)})


def _section_table(rows: Mapping[str, Sizes]) -> Table:
    """The sections whose sizes changed most."""
    most = sorted(rows, key=lambda name: (-abs(rows[name].grown), name))
    table = _size_table("section", {name: rows[name] for name in most[:_LISTED]})
    if len(rows) > _LISTED:
        table.add_row(Text(f"and {len(rows) - _LISTED:,} more", style="dim"))
    return table


def _size_table(title: str, rows: Mapping[str, Sizes]) -> Table:
    table = plain_table()
    table.add_column(title, no_wrap=True)
    for heading in ("before", "after", "change"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, sizes in rows.items():
        table.add_row(Text(printable(name)), *_sizes(sizes))
    return table


def _sizes(sizes: Sizes) -> tuple[str, str, str]:
    before, after = (show_size(size) if size else "·" for size in sizes)
    sign = "+" if sizes.grown >= 0 else "-"
    return before, after, f"{sign}{show_size(abs(sizes.grown))}" if sizes.grown else "="


def _library(change: LibraryChange, readable: Mapping[str, str]) -> Iterator[RenderableType]:
    yield from _texts(change.texts)
    for what, moved in (("needs", change.needed), ("needs versions", change.needs)):
        yield from _moved(what, moved, {})
    yield from _moved("exports", change.exports, readable)
    if change.sections:
        yield Padding(_section_table(change.sections), (0, 0, 0, 2))
    if change.device:
        yield Padding(_device_table(change.device), (0, 0, 0, 2))


def _moved(what: str, moved: Moved, readable: Mapping[str, str]) -> Iterator[RenderableType]:
    words = (("gone", moved.removed), ("new", moved.added))
    counts = [f"{len(names):,} {word}" for word, names in words if names]
    if counts:
        yield _indented(f"{what}: {', '.join(counts)}", 2)
    for sign, names in (("-", moved.removed), ("+", moved.added)):
        yield from _listed(names, sign, readable)


def _listed(
    names: Sequence[str], sign: str, readable: Mapping[str, str]
) -> Iterator[RenderableType]:
    for name in names[:_LISTED]:
        yield _indented(f"{sign} {shorten(readable.get(name, name), _LONG)}", 4)
    if len(names) > _LISTED:
        yield _indented(f"and {len(names) - _LISTED:,} more", 4, style="dim")


def _texts(texts: Iterable[Rewritten]) -> Iterator[RenderableType]:
    for name, before, after in texts:
        yield _indented(f"{name}:", 2)
        old, new = before.splitlines(), after.splitlines()
        for sign, lines, others in (("-", old, new), ("+", new, old)):
            yield from _listed([line for line in lines if line not in others], sign, {})


def _indented(text: str, indent: int, style: str = "") -> RenderableType:
    return Padding(Text(printable(text), style=style, overflow="fold"), (0, 0, 0, indent))


def _answer(answer: Answer, readable: Mapping[str, str]) -> Iterator[RenderableType]:
    uses = f"it uses {show_count(answer.uses, 'symbol')} of the first package"
    if answer.loads:
        verdict = ("yes", "bold green")
        yield Text.assemble(f"{answer.extension} loads with the second package: ", verdict)
        yield _indented(f"{uses}, and the second has them all", 2)
        return
    verdict = ("no", "bold red")
    yield Text.assemble(f"{answer.extension} loads with the second package: ", verdict)
    for reason in answer.reasons:
        yield _indented(reason, 2)
    if answer.symbols:
        verb = "is" if len(answer.symbols) == 1 else "are"
        yield _indented(f"{uses}, and {len(answer.symbols):,} of them {verb} gone:", 2)
        yield from _listed(answer.symbols, "-", readable)
