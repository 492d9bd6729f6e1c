"""Any input of a megabyte ends in 5 CPU seconds and 300 MB: it is read, or refused by a sentence.

Inputs are repetitions: a beginning, and tokens of the format as often as they fit. They show what
takes quadratic time, nests too deeply, or multiplies in memory.
"""

import os
import resource
import signal
import struct
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchyard.checks.compat.toolkits import parse_requirements
from torchyard.config.decode import decode
from torchyard.config.document import Document
from torchyard.errors import TorchyardError
from torchyard.index.conda.read import read_repodata, read_shard_index
from torchyard.index.libtorch.read import read_zips
from torchyard.index.simple.read import read_listing
from torchyard.insight.ninja_file import read_ninja_file
from torchyard.insight.ninja_log import read_history, read_ninja_log
from torchyard.package.elf.image import DAMAGED
from torchyard.package.elf.stream import ElfStream
from torchyard.package.limits import LIMITS
from torchyard.package.read import read_package
from torchyard.package.sbom.cyclonedx import decode_bill
from torchyard.package.statement import check_statement
from torchyard.package.tar_reader import Stream, TarError, tar_members
from torchyard.package.wheel.dist_info import parse_record
from torchyard.package.wheel.write import parse_metadata
from torchyard.store.makers import Trust
from torchyard.store.manifest import decode_result
from torchyard.toolchain.ninja import read_deps
from torchyard.toolchain.reading.cmake_code import read_cmake
from torchyard.toolchain.reading.python_code import read_python

pytestmark = pytest.mark.integration

SIZE = 1 << 20
SECONDS, MEMORY = 5, 300 << 20


ELF_HEADER = struct.pack(
    "<4s5B7xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 0, 3, 62, 1, 0, 64, 64, 0, 64, 56, 9, 64, 9, 1
)
"""Of a library with nine program headers and nine sections, all at its beginning."""


class Format(NamedTuple):
    """How a kind of file begins, tokens of its grammar, and the function that reads it.

    Tokens are separated by spaces, with Python's escapes in them, and `\\s` for a space.
    """

    tokens: str
    read: Callable[[Path], object]
    begin: str = ""

    def pieces(self) -> list[bytes]:
        words = (word.replace(r"\s", " ") for word in self.tokens.split())
        return [word.encode().decode("unicode_escape").encode("latin-1") for word in words]


def _toml(path: Path) -> object:
    document = Document(path.name, path.read_text(encoding="utf-8"))
    return decode(document), document.origins()


def _data(read: Callable[[bytes], object]) -> Callable[[Path], object]:
    return lambda path: read(path.read_bytes())


def _text(read: Callable[[str], object]) -> Callable[[Path], object]:
    return lambda path: read(path.read_text(encoding="utf-8"))


def _page(media: str) -> Callable[[Path], object]:
    return _data(lambda data: read_listing(data, "file:///simple/x/", media))


def _elf(data: bytes) -> None:
    stream = ElfStream(len(data), LIMITS)
    stream.feed(data)
    with suppress(*DAMAGED):  # a fault of the package
        stream.binary()


def _tar(data: bytes) -> None:
    with suppress(TarError):  # as above
        list(tar_members(Stream([data])))


def _zip(path: Path) -> None:
    path = path.rename(path.with_name("x-1-py3-none-any.whl"))
    read_package(path)


JSON = r'{"a": [ ] } , " \\u0061 1 -1e999 null, {"a":1}, [[]],'
FORMATS = {
    "toml": Format(r"a. [a]\n [[a]]\n [a.a. [ ] { {a= a=1\n \" ''' \\ = # 1_", _toml),
    "toml value": Format(r'[ {a= "", 1, a. = \' 9 \\u0041', _toml, "a="),
    "ninja": Format(
        r"build\sa :\scc\sb \n $ $\n $a ${a} \sa\s=\s$a\n rule\scc\n | include\sx\n :",
        lambda path: list(read_ninja_file(path)),
    ),
    "ninja log": Format(
        r"1\t2\t3\ta\tb\n 9 \t \n -1\t 1\t2\t3\t",
        lambda path: (read_ninja_log(path), read_history(path)),
        "# ninja log v5\n",
    ),
    "ninja deps": Format(
        r"\x00\x00\x00\x80 \x0c\x00\x00\x80 \x05\x00\x00\x00 a \xff\xff\xff\xff",
        _data(read_deps),
        "# ninjadeps\n\4\0\0\0",
    ),
    "simple html": Format(
        r"""<a\shref='x'> </a> < <! <!-- --> & &#1; <a\s a= ' " <![ <script> </""",
        _page("text/html"),
    ),
    "simple json": Format(JSON, _page("application/vnd.pypi.simple.v1+json"), '{"files":['),
    "zips": Format(JSON, _data(lambda data: read_zips(data, "file:///")), '{"files":['),
    "repodata": Format(JSON + ' "a":{', _data(read_repodata), '{"packages":{'),
    "shards": Format(r"\x81\xa1a \x91 \xdd\xff\xff\xff\xff \xc4\x01a", _data(read_shard_index)),
    "bill": Format(JSON, _data(lambda data: decode_bill(data, "x")), '{"components":['),
    "statement": Format(
        JSON, _data(lambda data: check_statement(data, "x", "0", Trust())), '{"payload":"'
    ),
    "manifest": Format(JSON, _data(lambda data: decode_result(data, "x")), '{"files":['),
    "record": Format(r", \" a,sha256=b,1\n \n \r ../", _text(parse_record)),
    "metadata": Format(r"A:\sb\n \sc\n : \n\n Requires-Dist:\sa\n", _text(parse_metadata)),
    "requirements": Format(
        r"( ) a [a] >=1, ; \sand\s 'a'=='a' @ ~= 1. - ==1.* \nRequires-Dist:\s os_name",
        _text(lambda text: parse_requirements(text.split("\nRequires-Dist: "))),
        "a",
    ),
    "cmake": Format(
        r'( ) if( set(A\s ${ } [[ ]] [=[ " \\ # \n find_package( ${A',
        _text(lambda text: read_cmake("CMakeLists.txt", text)),
    ),
    "python": Format(
        r"""( ) [ { - not\s lambda: a. a= if\s1:\n \s " f'{ \\\n import\sa\n 1+""",
        _text(lambda text: read_python("setup.py", text)),
    ),
    "elf": Format(
        r"\x01\x00\x00\x00\x06\x00\x00\x00 \xff\xff\xff\xff\xff\xff\xff\x7f \x00\x00\x00\x00 @\x00",
        _data(_elf),
        ELF_HEADER.decode("latin-1"),
    ),
    "zip": Format(
        r"PK\x03\x04\x14\x00\x00\x00 PK\x01\x02\x14\x00 PK\x05\x06 \x00\x00\x00\x00 \xff\xff",
        _zip,
    ),
    "tar": Format(
        r"\x00\x00\x00\x00\x00\x00\x00\x00 0000644\x00 ustar\x0000 x \x80\xff 5",
        _data(_tar),
    ),
}


class Ended(NamedTuple):
    """What a reader in a process of its own came to; the outcome is empty if it was right."""

    outcome: str
    seconds: float
    memory: int


def read_apart(read: Callable[[Path], object], path: Path) -> Ended:
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(send, _outcome(read, path).encode())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive) as answer:
        outcome = answer.read()
    _, status, usage = os.wait4(child, 0)
    if os.WIFSIGNALED(status):
        outcome = f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return Ended(outcome, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10)


def _outcome(read: Callable[[Path], object], path: Path) -> str:
    """Return what is wrong with how reading ends: neither a value nor an error with a sentence."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    try:
        read(path)
    except TorchyardError as error:
        return "" if str(error) else "an error without a sentence"
    except BaseException as error:  # noqa: BLE001 - any other is wrong
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


def try_piece(name: str, piece: bytes, folder: Path) -> None:
    form, path = FORMATS[name], folder / "input"
    begin = form.begin.encode("latin-1")
    path.write_bytes(begin + piece * ((SIZE - len(begin)) // len(piece)))
    before = read_apart(lambda _: None, path)
    ended = read_apart(form.read, path)
    assert not ended.outcome, piece
    assert ended.seconds < SECONDS, piece
    assert ended.memory - before.memory < MEMORY, piece


@pytest.mark.parametrize(
    ("name", "piece"),
    [
        ("toml", b"a."),
        ("toml value", b"9"),
        ("requirements", b">=1,"),
        ("requirements", b"("),
        ("python", b"1+"),
        ("simple html", b"<a href='x'>"),
    ],
)
def test_what_once_took_too_much(name: str, piece: bytes, tmp_path: Path) -> None:
    try_piece(name, piece, tmp_path)


inputs = st.sampled_from(sorted(FORMATS)).flatmap(
    lambda name: st.tuples(
        st.just(name), st.lists(st.sampled_from(FORMATS[name].pieces()), min_size=1, max_size=4)
    )
)


@given(inputs)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_repetition_ends_soon(
    tmp_path_factory: pytest.TempPathFactory, given_: tuple[str, list[bytes]]
) -> None:
    name, tokens = given_
    try_piece(name, b"".join(tokens), tmp_path_factory.mktemp("hostile"))


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_each_two_tokens_end_soon(name: str, tmp_path: Path) -> None:
    pieces = FORMATS[name].pieces()
    for piece in (*pieces, *map(b"".join, product(pieces, repeat=2))):
        try_piece(name, piece, tmp_path)
