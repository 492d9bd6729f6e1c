"""Read ninja's log and the output of `-d explain`: what was built, and why."""

import re
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from torchyard.errors import BuildError
from torchyard.host.process import stream

_EXPLAIN = "ninja explain: "
_COMPILED = re.compile(r"\.(?:o|obj|a|lib|so|dylib|dll|pyd)(?:\.\d+)*$")
_CAUSE = re.compile(
    r"(?:restat of )?output (?P<older>.+?) older than most recent input "
    r"|output (?P<missing>.+?) doesn't exist"
    r"|command line changed for (?P<command>.+)"
    r"|command line not found in log for (?P<unlogged>.+)"
    r"|recorded mtime of (?P<recorded>.+?) older than most recent input "
    r"|deps for '(?P<deps>.+?)' are missing"
    r"|stored deps info out of date for '(?P<stale>.+?)'"
)
"""Root causes; `X is dirty` only propagates one."""


_NEWER = re.compile(r" older than most recent input (?P<input>.+) \(-?\d+ vs -?\d+\)$")
_REASONS = {
    "missing": "it did not exist",
    "command": "its command changed",
    "unlogged": "this build had not made it",
    "deps": "this build had not made it",
    "stale": "its includes were unknown",
}
"""The meaning of ninja's other explanations, by the group of `_CAUSE`."""


_NUMBERS = re.compile(r"[0-9]{1,10}\t[0-9]{1,10}\t[0-9]{1,19}\t")
"""Ninja stores start and end in 32 bits, and times of files in 64."""


_IS_DEPS = 1 << 31
_DEPS_HEAD = b"# ninjadeps\n\4\0\0\0"


class LogRow(NamedTuple):
    """A line of ninja's log: start and end in milliseconds, and the unchanged rest."""

    begin: str
    end: str
    mtime: str
    output: str
    command: str


def log_rows(path: Path) -> Iterator[LogRow]:
    """Yield the lines of ninja's log, without one that was cut off when ninja was killed."""
    yield from parse_log(path.read_bytes())


def parse_log(data: bytes) -> Iterator[LogRow]:
    """Yield the lines of a log's content, as above."""
    for line in data.decode(errors="replace").splitlines():
        fields = line.split("\t")
        if len(fields) == len(LogRow._fields) and _NUMBERS.match(line):
            yield LogRow(*fields)


def read_log(path: Path) -> dict[str, LogRow]:
    """Return the outputs in ninja's log, each with its last entry."""
    return {row.output: row for row in log_rows(path)}


def read_deps(data: bytes) -> dict[str, list[str]]:
    """Return the includes of each output in `.ninja_deps`, up to a damaged record."""
    paths: list[str] = []
    found: dict[str, list[str]] = {}
    at = len(_DEPS_HEAD)
    with suppress(struct.error, IndexError):
        while data.startswith(_DEPS_HEAD) and at < len(data):
            (size,) = struct.unpack_from("<I", data, at)
            is_path, size = size < _IS_DEPS, size % _IS_DEPS
            record = struct.unpack_from(f"<{size}s" if is_path else f"<{size // 4}I", data, at + 4)
            if is_path:  # ends in zeros and a checksum
                paths.append(record[0][:-4].rstrip(b"\0").decode(errors="surrogateescape"))
            else:  # an output, its time in two numbers, and its includes
                found[paths[record[0]]] = [paths[number] for number in record[3:]]
            at += 4 + size
    return found


def is_compiled(output: str) -> bool:
    """Return whether a compiler, archiver or linker makes a file."""
    return _COMPILED.search(output) is not None


def is_unit(output: str) -> bool:
    """Return whether a compiler makes a file."""
    return output.endswith(".o")


class ExplainedBuild:
    """Collects ninja's explanations why each file was made."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def listen(self, line: str) -> bool:
        """Record a line if it is an explanation of ninja; return whether it is."""
        if not line.startswith(_EXPLAIN):
            return False
        reason = line.removeprefix(_EXPLAIN)
        if (found := _CAUSE.match(reason)) and found.lastgroup:
            newer = _NEWER.search(reason)
            why = f"{newer['input']} is newer" if newer else _REASONS.get(found.lastgroup, reason)
            self._reasons.setdefault(found[found.lastgroup], why)
        return True

    def reason(self, output: str) -> str:
        """Return why a file was made; empty if only because of its inputs."""
        return self._reasons.get(output, "")


class Bound:
    """Builds on a finished core, and ensures that nothing of it is compiled again."""

    def __init__(self, log: Path) -> None:
        self.core = read_log(log)
        self.explained: list[str] = []

    def build(self, folder: Path, say: Callable[[str], object]) -> int:
        """Build the remaining targets if none is part of the core; return the exit code.

        CMake calls the ninja that it was configured with, as another version can't read its log.
        """
        ninja = ["cmake", "--build", str(folder), "--", "-d", "explain"]
        stream([*ninja, "-n"], self.listen)
        self.refuse()
        code = stream(ninja, lambda line: self.listen(line) or say(line))
        if not code:
            self.check(folder)
        return code

    def listen(self, line: str) -> bool:
        """Record a line if it is an explanation of ninja; return whether it is."""
        is_reason = line.startswith(_EXPLAIN)
        if is_reason:
            self.explained.append(line.removeprefix(_EXPLAIN))
        return is_reason

    def cause(self) -> str | None:
        """Return why a file of the core would be compiled again, or None.

        Generated files are ignored: their content may be unchanged.
        """
        for line in self.explained:
            found = _CAUSE.match(line)
            if found is not None:
                output = next(value for value in found.groups() if value is not None)
                if output in self.core and is_compiled(output):
                    return line
        return None

    def refuse(self) -> None:
        """Fail if something of the core would be compiled again."""
        cause = self.cause()
        if cause is not None:
            raise _refusal(cause)

    def check(self, build: Path) -> None:
        """Fail if a compiled file of the core was made again."""
        now = read_log(build / ".ninja_log")
        for output, made in self.core.items():
            if is_compiled(output) and now.get(output, made) != made:
                raise _refusal(self.cause() or f"`{output}` was made again")


def _refusal(why: str) -> BuildError:
    msg = f"the core would be compiled again for this Python: {why}"
    hint = "nothing of the core may depend on Python: not its flags, nor any file that it includes"
    return BuildError(msg, hint=hint)
