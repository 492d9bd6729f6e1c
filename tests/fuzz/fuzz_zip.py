"""Wheels and zip archives: all of the reader, and all rules."""

from hashlib import sha256

from tests.fuzz.choices import Choices
from tests.fuzz.elves import build_elf
from tests.fuzz.laws import check_all, is_within_limits, read_bytes
from tests.fuzz.zips import build_zip
from tests.support.contents import ABOUT, GOOD_WHEEL, MODULE, WHEEL_NAME

from torchyard.package.wheel.dist_info import record
from torchyard.package.zip.writer import Written

_FILES = (WHEEL_NAME, "libtorch-cxx11-abi-2.13.0%2Bcu130.zip", "odd.whl")
_RAW = 255
_NAMES = (
    *GOOD_WHEEL,
    "tiny/lib/liba.so",
    "tiny/lib/libc.so.6",
    "tiny-1.2.0+cpu.data/purelib/a.pth",
    "../out.py",
    "tiny/LIB/LIBA.so",
    f"{ABOUT}/torchyard-spec.json",
    "tiny/",
    "/etc/passwd",
    "tiny/bin/protoc",
)


def try_one(data: bytes) -> None:
    choices = Choices(data)
    name = choices.pick(_FILES)
    raw = choices.number() == _RAW
    contents = read_bytes(choices.rest() if raw else _built(choices), name)
    is_within_limits(contents)
    check_all(contents)


def _built(choices: Choices) -> bytes:
    members = [
        (name.encode(), content if isinstance(content, bytes) else build_elf(choices))
        for name, content in GOOD_WHEEL.items()
        if not choices.rarely()
    ]
    members += [_member(choices) for _ in range(choices.number() % 4)]
    own = f"{ABOUT}/RECORD"
    rows = [
        Written(name.decode(errors="replace"), len(content), sha256(content).digest())
        for name, content in members
    ]
    members.append((own.encode(), record(rows, own).encode()))
    return build_zip(choices, members)


def _member(choices: Choices) -> tuple[bytes, bytes]:
    name = choices.text() if choices.rarely() else choices.pick(_NAMES).encode()
    match choices.number() % 4:
        case 0:
            return name, build_elf(choices)
        case 1:
            return name, bytes(2 * choices.number(2))
        case 2:
            return MODULE.encode(), choices.text()
        case _:
            return name, choices.text()
