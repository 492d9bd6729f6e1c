"""Invariants of every package, however hostile."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.contents import TODAY

from torchyard.checks.check import apply_rules
from torchyard.checks.policy import CheckPolicy
from torchyard.package.contents import Binary, Contents
from torchyard.package.limits import Limits
from torchyard.package.read import read_package

MOST_MEMORY = 24 << 20
"""What reading a small input may take, at the most."""

SMALL = Limits(
    directory=4 << 10,
    members=12,
    total=1 << 20,
    ratio=20,
    harmless=64 << 10,
    text=4 << 10,
    texts=8 << 10,
    table=2 << 10,
    tables=4 << 10,
    foreign=64 << 10,
    faults=20,
)
"""So small that inputs of a few bytes go beyond each of them."""


def read_bytes(data: bytes, name: str) -> Contents:
    """Read a package; nothing in it may raise."""
    with TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        return read_package(path, limits=SMALL)


def check_all(contents: Contents, *others: Contents) -> None:
    """Run all rules; nothing in a package may make one raise."""
    for finding in apply_rules([contents, *others], CheckPolicy(budget="1 MB"), TODAY)[0].findings:
        assert finding.what, f"{finding.rule} has nothing to say"


def is_within_limits(contents: Contents) -> None:
    """What was read is no more than what was asked for."""
    assert len(contents.faults) <= SMALL.faults + 1
    assert len(contents.files) <= SMALL.members
    assert all(len(text) <= SMALL.text for text in contents.texts.values())
    assert sum(map(len, contents.texts.values())) <= SMALL.texts
    assert contents.texts.keys() <= contents.files.keys()
    binaries = [file.binary for file in contents.files.values() if file.binary]
    for binary in binaries:
        is_binary_within_limits(binary)
    assert sum(len(binary.exports) + len(binary.imports) for binary in binaries) <= SMALL.tables
    unpacked = sum(file.size for file in contents.files.values() if file.digest)
    assert unpacked <= SMALL.total


def is_binary_within_limits(binary: Binary) -> None:
    assert len(binary.exports) + len(binary.imports) <= SMALL.table
    for names in (binary.exports, binary.imports):
        assert not names or names.endswith(b"\0")
