"""Streaming scanner for GPU code in libraries, without a GPU or vendor tools.

nvcc puts programs into containers, one for each source file: a header, then for each program its
own header and its bytes. Containers start at multiples of eight. Clang makes bundles, such as for
AMD's GPUs, which start at multiples of 4096. The bytes of found programs are skipped.
"""

import re
import struct
import zlib
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from msgspec.structs import replace

from torchyard.compute.registry import compute_platforms
from torchyard.package.contents import DeviceCode

BUNDLE_ALIGNED = 4096
_PLAIN, _PACKED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
_MOST_PROGRAMS = 256
_LONGEST_LIST = 64 << 10
_ENOUGH = 256 << 10
"""The bytes of a compressed bundle that contain its list."""
_ZLIB, _ZSTD = 0, 1


class Short(Exception):  # noqa: N818 - no error: more bytes must come
    """The list is incomplete: reading needs more bytes."""


class CodeBundle(NamedTuple):
    """The programs of a bundle, and its size in bytes; empty if it is not a bundle."""

    programs: tuple[DeviceCode, ...] = ()
    size: int = 0


def is_bundle(data: bytes, at: int) -> bool:
    """Return whether the available bytes start a bundle."""
    head = data[at : at + len(_PLAIN)]
    return _PLAIN.startswith(head) or head.startswith(_PACKED) or _PACKED.startswith(head)


def bundle_at(data: bytes, at: int) -> CodeBundle:
    """Read the bundle that starts there; raise `Short` if it needs more bytes."""
    if data.startswith(_PLAIN, at):
        return _listed(data[at : at + _LONGEST_LIST], whole=len(data) - at >= _LONGEST_LIST)
    if data.startswith(_PACKED, at):
        return _unpacked(data, at)
    raise Short


def _listed(data: bytes, *, whole: bool) -> CodeBundle:
    try:
        return _list(data)
    except struct.error:
        if whole:
            return CodeBundle()
        raise Short from None


def _list(data: bytes) -> CodeBundle:
    (count,) = struct.unpack_from("<Q", data, len(_PLAIN))
    position = len(_PLAIN) + 8
    found: list[DeviceCode] = []
    end = 0
    for _ in range(min(count, _MOST_PROGRAMS)):
        offset, size, length = struct.unpack_from("<QQQ", data, position)
        (target,) = struct.unpack_from(f"{min(length, _LONGEST_LIST)}s", data, position + 24)
        position += 24 + length
        end = max(end, offset + size)
        kind = next((kind for word, kind in _bundled_kinds().items() if word in target), "")
        if kind and size:
            arch = target.rpartition(b"--")[2].decode(errors="backslashreplace")
            found.append(DeviceCode(kind, arch, 1, size))
    return CodeBundle(tuple(found), end)


def _unpacked(data: bytes, at: int) -> CodeBundle:
    """Unpack enough to read the list; keep the sizes in the file."""
    if len(data) - at < 32:  # noqa: PLR2004 - the longest header
        raise Short
    version, method = struct.unpack_from("<HH", data, at + 4)
    sizes = {1: "<II", 2: "<II", 3: "<QQ"}.get(version)
    if sizes is None or method not in (_ZLIB, _ZSTD):
        return CodeBundle()
    stored, size = struct.unpack_from(sizes, data, at + 8)
    header = 8 + struct.calcsize(sizes) + 8
    if version == 1:
        stored, size, header = 0, stored, header - 4
    if len(data) - at < min(stored or _ENOUGH, _ENOUGH):
        raise Short
    start = _inflated(data[at + header : at + _ENOUGH], method)
    try:
        bundle = _listed(start, whole=True)
    except Short:
        return CodeBundle()
    share = stored / size if stored and size else 1
    programs = (replace(code, size=round(code.size * share)) for code in bundle.programs)
    return CodeBundle(tuple(programs), stored)


def _inflated(data: bytes, method: int) -> bytes:
    """Return the first bytes of compressed data; empty if it is damaged."""
    if method == _ZLIB:
        try:
            return zlib.decompressobj().decompress(data, _LONGEST_LIST)
        except zlib.error:
            return b""
    from torchyard.host.zstd import ZstdDecompressor, ZstdError  # noqa: PLC0415 - rare

    try:
        return ZstdDecompressor().decompress(data, _LONGEST_LIST)
    except ZstdError:
        return b""


_CONTAINER = struct.Struct("<4sHHQ")
_MAGIC = b"\x50\xed\x55\xba"
_PROGRAM = struct.Struct("<HHIQIIHHIIIQ")
_PTX, _CUBIN = 1, 2
_EXACT, _FAMILY = 0x100000, 0x200000
"""Flags of a program: `sm_90a` runs only on 9.0, `sm_100f` on 10.x."""
_ALIGNED = 8
_MOST = 1000
"""The plausible maximum of architectures; there are several dozen."""


_FATBIN = re.compile(r"fat_?bin", re.IGNORECASE)


def is_likely_in(name: str) -> bool:
    """Return whether a file's name suggests scanning it on the first pass.

    Other files for which `may_be_in` is true are read again, so this affects only the speed.
    """
    return _likely().search(name) is not None


@cache
def _likely() -> re.Pattern[str]:
    words = (word for platform in compute_platforms() for word in platform.device_files)
    return re.compile("|".join((*words, "gpu", "triton", "kernel")), re.IGNORECASE)


@cache
def _bundled_kinds() -> dict[bytes, str]:
    platforms = compute_platforms()
    return {word.encode(): kind for p in platforms for word, kind in p.bundled_kinds.items()}


@cache
def _loaders() -> tuple[str, ...]:
    return tuple(name for platform in compute_platforms() for name in platform.device_loaders)


def may_be_in(sections: Iterable[str], needed: Iterable[str]) -> bool:
    """Return whether a library has device sections or no sections, or loads code itself."""
    names = list(sections)
    if not names or any(map(_FATBIN.search, names)):
        return True
    return any(library.startswith(_loaders()) for library in needed)


class DeviceScan:
    """Searches a stream of pieces for device code."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], DeviceCode] = {}
        self._base = 0  # file offset of the pending or next bytes
        self._waiting = b""
        self._next = 0  # file offset to scan next
        self._end = 0  # end of the current container, or 0

    def found(self) -> tuple[DeviceCode, ...]:
        """Return the device code; raise `ValueError` if there is implausibly much."""
        if len(self._found) > _MOST:
            msg = f"it has code for more than {_MOST} architectures"
            raise ValueError(msg)
        return tuple(code for _, code in sorted(self._found.items()))

    def _add(self, code: DeviceCode) -> None:
        key = (code.kind, code.arch)
        if len(self._found) > _MOST:
            return
        if before := self._found.get(key):
            programs, size = before.programs + code.programs, before.size + code.size
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
        """Scan all data; afterwards `_next` is the start of an incomplete header, or the end."""
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
        """Return the start of the next container or bundle, or of a possible incomplete one.

        Checking every eighth byte first, and one in each page, is faster than any search.
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
