"""Streaming scanner for GPU code in libraries; no GPU or vendor tool is needed.

nvcc puts programs into containers, one for each file of source: a header, then for each program a
header of its own and its bytes. The containers begin at multiples of eight. Clang makes bundles for
AMD's GPUs, which begin at multiples of 4096 (see `bundles`). The bytes of programs that were found
are skipped.
"""

import re
import struct
from collections.abc import Iterable
from functools import cache

from torchyard.compute.registry import compute_platforms
from torchyard.package.contents import DeviceCode
from torchyard.package.device.bundles import BUNDLE_ALIGNED, Short, bundle_at, is_bundle

_CONTAINER = struct.Struct("<4sHHQ")
_MAGIC = b"\x50\xed\x55\xba"
_PROGRAM = struct.Struct("<HHIQIIHHIIIQ")
_PTX, _CUBIN = 1, 2
_EXACT, _FAMILY = 0x100000, 0x200000
"""Flags of a program: `sm_90a` runs on nothing but 9.0, `sm_100f` on 10.x."""
_ALIGNED = 8
_MOST = 1000
"""More architectures than this are an error; there are some dozens."""


_FATBIN = re.compile(r"fat_?bin", re.IGNORECASE)


def is_likely_in(name: str) -> bool:
    """Return whether a file is worth scanning on the first pass, going by its name.

    Other files that turn out to be `may_be_in` are read again, so this affects only the speed.
    """
    return _likely().search(name) is not None


@cache
def _likely() -> re.Pattern[str]:
    words = (word for platform in compute_platforms() for word in platform.device_files)
    return re.compile("|".join((*words, "gpu", "triton", "kernel")), re.IGNORECASE)


@cache
def _loaders() -> tuple[str, ...]:
    return tuple(name for platform in compute_platforms() for name in platform.device_loaders)


def may_be_in(sections: Iterable[str], needed: Iterable[str]) -> bool:
    """Return whether a library has sections for device code, no sections, or loads code itself."""
    names = list(sections)
    if not names or any(map(_FATBIN.search, names)):
        return True
    return any(library.startswith(_loaders()) for library in needed)


class DeviceScan:
    """Searches a stream of pieces for device code."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], DeviceCode] = {}
        self._base = 0  # file offset of the pending bytes, or of the next ones
        self._waiting = b""
        self._next = 0  # file offset to scan next
        self._end = 0  # end of the current container, or 0

    def found(self) -> tuple[DeviceCode, ...]:
        """Return what was found. Raises `ValueError` if that is more than is plausible."""
        if len(self._found) > _MOST:
            msg = f"it has code for more than {_MOST} architectures"
            raise ValueError(msg)
        return tuple(code for _, code in sorted(self._found.items()))

    def _add(self, code: DeviceCode) -> None:
        key = (code.kind, code.arch)
        if len(self._found) > _MOST:
            return
        if known := self._found.get(key):
            programs, size = known.programs + code.programs, known.size + code.size
            code = DeviceCode(code.kind, code.arch, programs, size)
        self._found[key] = code

    def feed(self, piece: bytes) -> None:
        """Scan the next piece. An incomplete header is kept until the rest arrives."""
        data = self._waiting + piece if self._waiting else piece
        last = self._base + len(data)
        if self._next < last:
            self._scan(data)
        keep = max(0, min(self._next - self._base, len(data)))
        self._waiting = data[keep:]
        self._base = last - len(self._waiting)

    def _scan(self, data: bytes) -> None:
        """Scan all data; afterwards `_next` is where an incomplete header begins, or the end."""
        last = self._base + len(data)
        whole = True
        while whole and self._next < last:
            if not self._end:
                self._next = self._base + self._nearest(data, self._next - self._base)
            at = self._next - self._base
            if self._end:
                whole = self._program(data, at)
            elif data.startswith(_MAGIC, at):
                whole = self._container(data, at)
            else:
                whole = is_bundle(data, at) and self._bundle(data, at)

    def _nearest(self, data: bytes, start: int) -> int:
        """Return where the next container or bundle begins, or may begin if it is incomplete.

        Looking at every eighth byte first, and at one in a page, is faster than any search.
        """
        first = start + -(self._base + start) % _ALIGNED
        marks = data[first + 3 :: _ALIGNED]
        index = marks.find(_MAGIC[3])
        while index >= 0 and not data.startswith(_MAGIC, first + index * _ALIGNED):
            index = marks.find(_MAGIC[3], index + 1)
        found = len(data) if index < 0 else first + index * _ALIGNED
        page = start + -(self._base + start) % BUNDLE_ALIGNED
        firsts = data[page:found:BUNDLE_ALIGNED]
        if b"_" in firsts or b"C" in firsts:
            for index, letter in enumerate(firsts):
                at = page + index * BUNDLE_ALIGNED
                if letter in b"_C" and is_bundle(data, at):
                    return at
        last = len(data) - (self._base + len(data)) % _ALIGNED
        if found == len(data) and first <= last < found and _MAGIC.startswith(data[last:][:4]):
            return last
        return found

    def _container(self, data: bytes, at: int) -> bool:
        """Read a container's header, and expect its programs; False if it is incomplete."""
        if at + _CONTAINER.size > len(data):
            return False
        _, version, header, size = _CONTAINER.unpack_from(data, at)
        if version == 1 and header == _CONTAINER.size and size >= _PROGRAM.size:
            self._next += header
            self._end = self._next + size
        else:
            self._next += _ALIGNED
        return True

    def _program(self, data: bytes, at: int) -> bool:
        """Count a program, and expect the next one; False if its header is incomplete."""
        if at + _PROGRAM.size > len(data):
            return False
        kind, _, header, size, _, _, _, _, arch, _, _, flags = _PROGRAM.unpack_from(data, at)
        following = self._next + header + size
        if header < _PROGRAM.size or following > self._end:
            self._next, self._end = self._next + _ALIGNED, 0
            return True
        letter = "a" if flags & _EXACT else "f" if flags & _FAMILY else ""
        if kind == _CUBIN:
            self._add(DeviceCode("cubin", f"sm_{arch}{letter}", 1, size))
        elif kind == _PTX:
            self._add(DeviceCode("ptx", f"compute_{arch}{letter}", 1, size))
        self._next = following
        if following + _PROGRAM.size > self._end:
            self._next, self._end = self._end, 0
        return True

    def _bundle(self, data: bytes, at: int) -> bool:
        """Count the programs of a bundle; False if its list is incomplete."""
        try:
            bundle = bundle_at(data, at)
        except Short:
            return False
        for code in bundle.programs:
            self._add(code)
        self._next += max(bundle.size, BUNDLE_ALIGNED)
        return True
