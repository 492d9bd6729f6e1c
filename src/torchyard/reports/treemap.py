"""A picture of a package's bytes: each file's area is its size."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from torchyard.model.quantity import show_count, show_size
from torchyard.package.contents import PackageFile
from torchyard.reports.picture import LETTER, LINE, PictureText, Rect, Shape, SvgPicture
from torchyard.terminal.progress import shorten

_SMALLEST = 420
"""The smallest area of a separate file or folder, in pixels."""
_STRIP, _PAD = 17, 2
_HEADED = (70, 46)
"""The smallest width and height of a folder with its name above its contents."""

KINDS = {
    "library": "programs and libraries",
    "python": "Python",
    "header": "headers and sources",
    "other": "other files",
}
_ENDINGS = {"python": (".py", ".pyi", ".pyc"), "header": (".h", ".hpp", ".cuh", ".inl", ".cpp")}


class Area(NamedTuple):
    """A file, a folder, or several small ones combined."""

    name: str
    size: int
    kind: str
    files: int = 1
    parts: tuple["Area", ...] = ()


def treemap(files: Iterable[PackageFile], width: int, height: int) -> SvgPicture:
    """Draw all files, as large as they are stored."""
    whole = _tree("", [(file.name, file) for file in files])
    return SvgPicture(
        "treemap",
        width,
        height,
        f"Sizes: {show_count(whole.files, 'file')}, {show_size(whole.size)}",
        "Every rectangle is a file or folder; its area is what it takes in the package. "
        "The largest files are listed below as text.",
        tuple(_draw(whole, Rect(0, 0, width, height), whole.size / (width * height))),
    )


def stored(file: PackageFile) -> int:
    """The size of a file in its package; conda packages compress members together."""
    return file.stored or file.size


def file_kind(file: PackageFile) -> str:
    if file.binary:
        return "library"
    return next((kind for kind, ends in _ENDINGS.items() if file.name.endswith(ends)), "other")


def _tree(name: str, files: Sequence[tuple[str, PackageFile]]) -> Area:
    """Make a tree of paths; a folder that contains only a folder is merged with it."""
    folders: dict[str, list[tuple[str, PackageFile]]] = {}
    parts: list[Area] = []
    for path, file in files:
        head, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(head, []).append((rest, file))
        else:
            parts.append(Area(_join(name, path), stored(file), file_kind(file)))
    parts += [_tree(_join(name, folder), inside) for folder, inside in folders.items()]
    if len(parts) == 1 and folders:
        return parts[0]
    return _together(name, parts)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _together(name: str, parts: Sequence[Area]) -> Area:
    """Combine parts; the kind is that of most bytes."""
    sizes = dict.fromkeys(KINDS, 0)
    for part in parts:
        sizes[part.kind] += part.size
    largest = max(sizes, key=lambda kind: sizes[kind])
    size, files = sum(sizes.values()), sum(part.files for part in parts)
    return Area(name, size, largest, files, tuple(parts))


def _draw(part: Area, outer: Rect, scale: float) -> Iterator[Shape]:
    """Draw a part and its contents; `scale` is the number of bytes per pixel."""
    headed = outer.width >= _HEADED[0] and outer.height >= _HEADED[1]
    if not part.parts or not (headed or not part.name):
        texts = _labels(part, outer) if outer.height >= LINE else ()
        yield Shape(part.kind, _title(part), outer, texts)
        return
    inside = outer
    if part.name:
        yield Shape("folder", _title(part), outer, _labels(part, outer))
        inside = Rect(
            outer.x + _PAD,
            outer.y + _STRIP,
            outer.width - 2 * _PAD,
            outer.height - _STRIP - _PAD,
        )
    large = [child for child in part.parts if child.size >= _SMALLEST * scale]
    small = [child for child in part.parts if child.size < _SMALLEST * scale]
    if small:
        rest = _together(_join(part.name, "…"), small)
        large.append(rest._replace(parts=()))
    large.sort(key=lambda child: -child.size)
    for child, rect in zip(large, squarify([child.size for child in large], inside), strict=True):
        yield from _draw(child, rect, scale)


def _title(part: Area) -> str:
    several = f", {show_count(part.files, 'file')}" if part.files > 1 else ""
    return f"{part.name}: {show_size(part.size)}{several} ({KINDS[part.kind]})"


def _labels(part: Area, rect: Rect) -> tuple[PictureText, ...]:
    """Return the name and the size, as far as they fit."""
    room = int((rect.width - 6) / LETTER)
    name = part.name.rpartition("/")[2]
    name = show_count(part.files, "small file") if name == "…" else name
    name, size = (f"{name}/" if part.parts else name), show_size(part.size)
    if room < min(len(name), 5):
        return ()
    x, y = rect.x + 4, rect.y + 12.5
    both = f"{name} {size}"
    if len(both) <= room:
        return (PictureText(x, y, both),)
    texts = (PictureText(x, y, shorten(name, room)),)
    if not part.parts and rect.height >= 2 * LINE + 2 and len(size) <= room:
        return (*texts, PictureText(x, y + LINE, size))
    return texts


def squarify(sizes: Sequence[int], rect: Rect) -> list[Rect]:
    """Cut a rectangle into parts of these areas, largest first, each nearly square.

    After Bruls, Huizing and van Wijk: rows grow along the shorter side while that makes their worst
    part squarer.
    """
    total = sum(sizes)
    scale = rect.width * rect.height / total if total else 0
    areas = [size * scale for size in sizes]
    rects: list[Rect] = []
    while areas:
        side = min(rect.width, rect.height)
        count = 1
        while count < len(areas) and _worst(areas[: count + 1], side) <= _worst(
            areas[:count], side
        ):
            count += 1
        row, areas = areas[:count], areas[count:]
        cut, rect = _row(row, rect)
        rects += cut
    return rects


def _worst(areas: Sequence[float], side: float) -> float:
    """The aspect ratio of the worst part of a row along a side."""
    thick = sum(areas) / side if side else 0
    if not thick or not min(areas):
        return float("inf")
    lengths = (max(areas) / thick, min(areas) / thick)
    return max(max(length / thick, thick / length) for length in lengths)


def _row(areas: Sequence[float], rect: Rect) -> tuple[list[Rect], Rect]:
    """Lay a row along the shorter side, and return the remaining rectangle."""
    x, y, width, height = rect
    total, rects = sum(areas), []
    if width >= height:
        thick = min(width, total / height) if height else 0
        for area in areas:
            rects.append(Rect(x, y, thick, height * area / total if total else 0))
            y += rects[-1].height
        return rects, Rect(x + thick, rect.y, max(0, width - thick), height)
    thick = min(height, total / width) if width else 0
    for area in areas:
        rects.append(Rect(x, y, width * area / total if total else 0, thick))
        x += rects[-1].width
    return rects, Rect(rect.x, y + thick, width, max(0, height - thick))
