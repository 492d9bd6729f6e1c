"""Read conda packages: `.conda`, a zip archive with two tar archives, and `.tar.bz2`."""

import bz2
import os
from typing import BinaryIO

import deflate

from torchyard.host.zstd import ZstdDecompressor
from torchyard.package.conda.name import SUFFIX
from torchyard.package.contents import FaultKind
from torchyard.package.limits import Faults, Limits
from torchyard.package.members import FoundMembers
from torchyard.package.tar_archive import CompressedTar, file_pieces, read_tar
from torchyard.package.zip.directory import STORED, ZipEntry, read_directory
from torchyard.package.zip.inflate import Progress
from torchyard.package.zip.names import check_member_names


def read_conda(file: BinaryIO, name: str, limits: Limits, progress: Progress) -> FoundMembers:
    """Read a package of either kind."""
    if name.endswith(SUFFIX):
        return _read_new(file, name, limits, progress)
    found = FoundMembers(limits, Faults(limits.faults))
    handle = file.fileno()
    tar = CompressedTar(bz2.BZ2Decompressor, handle, 0, os.fstat(handle).st_size)
    inside: list[str] = []
    read_tar(tar, progress, "", found, inside)
    check_member_names(inside, found.faults)
    return found


def _read_new(file: BinaryIO, name: str, limits: Limits, progress: Progress) -> FoundMembers:
    directory = read_directory(file, limits)
    found = FoundMembers(limits, Faults(limits.faults, directory.faults))
    handle = file.fileno()
    stem = name.removesuffix(SUFFIX)
    expected = {"metadata.json", f"info-{stem}.tar.zst", f"pkg-{stem}.tar.zst"}
    names = {entry.name for entry in directory.entries}
    for missing in sorted(expected - names):
        found.faults.add(FaultKind.STRUCTURE, missing, "is missing")
    for other in sorted(names - expected):
        found.faults.add(FaultKind.STRUCTURE, other, "does not belong in a conda package")
    inside: list[str] = []
    for entry in directory.entries:
        if not entry.sound:
            continue
        if entry.method != STORED:
            what = "is compressed again, which is invalid in conda packages"
            found.faults.add(FaultKind.STRUCTURE, entry.name, what)
            continue
        _check_sum(handle, entry, found)
        if entry.name.endswith(".tar.zst"):
            tar = CompressedTar(ZstdDecompressor, handle, entry.data, entry.stored)
            read_tar(tar, progress, entry.name, found, inside)
    check_member_names(inside, found.faults)
    return found


def _check_sum(handle: int, entry: ZipEntry, found: FoundMembers) -> None:
    crc = 0
    for piece in file_pieces(handle, entry.data, entry.stored):
        crc = deflate.crc32(piece, crc)
    if crc != entry.crc:
        found.faults.add(FaultKind.CONTENT, entry.name, "does not match its checksum")
