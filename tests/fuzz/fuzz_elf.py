"""ELF files: the result does not depend on the pieces, and equals that of a mapped file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.choices import Choices
from tests.fuzz.elves import build_elf
from tests.fuzz.laws import SMALL, check_all, is_binary_within_limits
from tests.support.contents import GOOD_WHEEL, MODULE, wheel

from torchyard.errors import BuildError
from torchyard.package.contents import Binary, Fault
from torchyard.package.elf import stream
from torchyard.package.elf.file import read_elf, section_names, symbols
from torchyard.package.elf.image import MAGIC
from torchyard.package.elf.stream import ElfStream
from torchyard.package.limits import Faults
from torchyard.package.members import FoundMembers

_RAW = 255
_HEADER = 64
_CONSTANTS = ("_HEAD", "_TAIL", "_NEAR", "_LONGEST_HEADERS", "_LONGEST_PARTS")


def try_one(data: bytes) -> None:
    choices = Choices(data)
    borders = [16 + choices.number(2) % 1024 for _ in range(4)]
    with_rules = choices.number() % 8 == 0
    window = choices.number() * 4
    content = choices.rest() if choices.number() == _RAW else build_elf(choices)
    if not content.startswith(MAGIC):
        return
    whole = _streamed([content])
    assert _streamed(list(_cut(content, borders))) == whole
    with _keeping(window):
        again = _streamed(list(_cut(content, borders)))
    far = again[1] and "too far apart" in again[1][0].what
    assert far or again == whole
    _compare_with_mapped(content, whole[0])
    if whole[0] is not None:
        is_binary_within_limits(whole[0])
        if with_rules:
            check_all(wheel({**GOOD_WHEEL, MODULE: whole[0]}))


def _cut(content: bytes, borders: list[int]) -> Iterator[bytes]:
    """Cut a file into pieces, of which the first holds the header."""
    place, index = 0, 0
    while place < len(content):
        size = max(borders[index % len(borders)], 0 if place else _HEADER)
        yield content[place : place + size]
        place, index = place + size, index + 1


def _streamed(pieces: list[bytes]) -> tuple[Binary | None, tuple[Fault, ...]]:
    found = FoundMembers(SMALL, Faults())
    stream = ElfStream(sum(map(len, pieces)), SMALL)
    for piece in pieces:
        stream.feed(piece)
    return found.binary("a.so", stream, lambda: pieces), found.faults.all()


@contextmanager
def _keeping(window: int) -> Iterator[None]:
    """Let the reader keep so little of a file that it has to pass again, as very large ones do."""
    known = {name: getattr(stream, name) for name in _CONSTANTS}
    for name in _CONSTANTS:
        setattr(stream, name, max(window, _HEADER))
    try:
        yield
    finally:
        for name, value in known.items():
            setattr(stream, name, value)


def _compare_with_mapped(content: bytes, streamed: Binary | None) -> None:
    """Whatever the stream can read, the mapped reader can, too: and it is the same."""
    with TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / "a.so"
        path.write_bytes(content)
        try:
            mapped = read_elf(path)
        except BuildError:
            assert streamed is None
            return
        assert mapped is not None
        for read in (symbols, section_names):
            try:
                read(path)
            except BuildError:
                continue
    if streamed is not None:
        shared = ("machine", "dynamic", "soname", "needed", "rpath", "runpath", "build_id")
        for name in shared:
            assert getattr(streamed, name) == getattr(mapped, name), name
        assert tuple(dict.fromkeys(need.version for need in streamed.needs)) == mapped.versions
