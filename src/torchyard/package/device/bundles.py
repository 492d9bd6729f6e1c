"""Bundles of programs for AMD's GPUs, as clang embeds them in libraries.

A bundle is a list of programs, by target, and their bytes; or, since ROCm 6, all that compressed.
"""

import struct
import zlib
from typing import NamedTuple

from msgspec.structs import replace

from torchyard.package.contents import DeviceCode

BUNDLE_ALIGNED = 4096
_PLAIN, _PACKED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
_MOST_PROGRAMS = 256
_LONGEST_LIST = 64 << 10
_ENOUGH = 256 << 10
"""This much of a compressed bundle contains its list."""
_ZLIB, _ZSTD = 0, 1


class Short(Exception):  # noqa: N818 - no error: more bytes must come
    """The list is incomplete: more bytes are needed."""


class CodeBundle(NamedTuple):
    """The programs of a bundle, and its size in bytes; none if it was not a bundle."""

    programs: tuple[DeviceCode, ...] = ()
    size: int = 0


def is_bundle(data: bytes, at: int) -> bool:
    """Return whether a bundle begins there, as far as the available bytes show."""
    head = data[at : at + len(_PLAIN)]
    return _PLAIN.startswith(head) or head.startswith(_PACKED) or _PACKED.startswith(head)


def bundle_at(data: bytes, at: int) -> CodeBundle:
    """Read the bundle that begins there. Raises `Short` if more bytes are needed."""
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
    place = len(_PLAIN) + 8
    found: list[DeviceCode] = []
    end = 0
    for _ in range(min(count, _MOST_PROGRAMS)):
        offset, size, length = struct.unpack_from("<QQQ", data, place)
        (target,) = struct.unpack_from(f"{min(length, _LONGEST_LIST)}s", data, place + 24)
        place += 24 + length
        end = max(end, offset + size)
        if b"amdgcn" in target and size:
            arch = target.rpartition(b"--")[2].decode(errors="backslashreplace")
            found.append(DeviceCode("hsaco", arch, 1, size))
    return CodeBundle(tuple(found), end)


def _unpacked(data: bytes, at: int) -> CodeBundle:
    """Unpack enough to read the list. Sizes are those in the file."""
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
    """Return the first bytes of compressed data; none if it is damaged."""
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
