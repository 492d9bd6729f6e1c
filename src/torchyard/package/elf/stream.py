"""Streaming ELF reader that keeps only the parts for the loader.

Symbols and their names are near the start, unless patchelf moved them to the end; both ends are
kept, and the targets of program headers. If another part is needed, `binary` raises
`NotKept`, and the file must be streamed again with that part in `wanted`.
"""

from torchyard.package.contents import Binary
from torchyard.package.device.scan import DeviceScan
from torchyard.package.elf.image import DAMAGED, PT_DYNAMIC, PT_NOTE, Image
from torchyard.package.elf.symbols import SymbolNames, symbol_names
from torchyard.package.limits import Limits

_HEAD = 9 << 20
_TAIL = 9 << 20
_NEAR = 64 << 10
"""Bytes before the section headers, which contain the sections' names."""
_LONGEST_HEADERS = 8 << 20
_LONGEST_PARTS = 1 << 20
_MOST_PARTS = 64

Part = tuple[int, int]


class NotKept(Exception):  # noqa: N818 - no error: the file must be read again
    """A needed part was not kept; the argument is its start and end."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.part = part


class ElfStream:
    """An ELF file of a known size, fed in pieces, and optionally `searched` for device code."""

    def __init__(
        self, size: int, limits: Limits, wanted: tuple[Part, ...] = (), *, searched: bool = True
    ) -> None:
        self.size = size
        self.searched = searched
        self._limits = limits
        self._kept = _Kept([(0, min(size, _HEAD)), (max(0, size - _TAIL), size), *wanted])
        self._device = DeviceScan()
        self._started = False

    def feed(self, piece: bytes) -> None:
        """Take the next piece; the first must contain the file's header."""
        self._kept.feed(piece)
        if self.searched:
            self._device.feed(piece)
        if not self._started:
            self._started = True
            self._keep_more()

    def _keep_more(self) -> None:
        """Keep the targets of headers; malformed headers are reported at the end."""
        try:
            image = Image(self._kept.read, self.size)
            step, count = image.section_shape
            start = image.section_headers
            end = start + min(step * count, _LONGEST_HEADERS)
            self._kept.want((max(0, start - _NEAR), min(self.size, end)))
            pointed = [s for s in image.segments if s.kind in (PT_DYNAMIC, PT_NOTE)]
            left = _LONGEST_PARTS
            for segment in pointed[:_MOST_PARTS]:
                if segment.size <= left:
                    left -= segment.size
                    self._kept.want((segment.offset, segment.offset + segment.size))
        except (*DAMAGED, NotKept):
            return

    def binary(self) -> Binary:
        """Return the parsed file; raise one of `DAMAGED`, or `NotKept`."""
        image = Image(self._kept.read, self.size)
        loaded = image.loaded()
        names = SymbolNames(b"", b"", b"", b"")
        if loaded.dynamic:
            names = symbol_names(image, self._limits.table)
        sections: dict[str, int] = {}
        for section in image.sections:
            if section.name:
                sections[section.name] = sections.get(section.name, 0) + section.size
        return Binary(
            format="elf",
            machine=image.machine,
            build_id=image.build_id(),
            sections=sections,
            device=self._device.found(),
            **names._asdict(),
            **loaded._asdict(),
        )


class _Kept:
    """Kept parts of a stream, sorted and without overlaps."""

    def __init__(self, parts: list[Part]) -> None:
        self._parts: list[tuple[int, int, bytearray]] = []
        self._position = 0
        for part in parts:
            self.want(part)

    def want(self, part: Part) -> None:
        """Keep a part from now on; merge overlapping parts."""
        start, end = max(part[0], self._position), part[1]
        apart: list[tuple[int, int, bytearray]] = []
        for kept in self._parts:
            if kept[0] <= start < kept[1]:
                start = kept[1]
            if start < kept[0] <= end:
                end = max(end, kept[1])
                continue
            apart.append(kept)
        if start < end:
            apart.append((start, end, bytearray()))
        self._parts = sorted(apart, key=lambda kept: kept[0])

    def feed(self, piece: bytes) -> None:
        first = self._position
        last = self._position = first + len(piece)
        for start, end, data in self._parts:
            if start < last and first < end:
                data.extend(memoryview(piece)[max(0, start - first) : end - first])

    def read(self, offset: int, size: int) -> bytes:
        found = b""
        position, end = offset, offset + size
        for start, _, data in self._parts:
            if start <= position < start + len(data):
                more = bytes(memoryview(data)[position - start : end - start])
                found = found + more if found else more
                position += len(more)
        if position < end:
            raise NotKept((offset, end))
        return found
