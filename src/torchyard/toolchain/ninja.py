"""What ninja did and why, from its log and from what `-d explain` says."""

import re
from collections.abc import Callable
from pathlib import Path

from torchyard.errors import BuildError
from torchyard.host.process import stream

_EXPLAIN = "ninja explain: "
_FIELDS = 5
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
"""The reasons that a file has of its own; `X is dirty` only passes one on."""


def read_log(path: Path) -> dict[str, tuple[str, ...]]:
    """The files that ninja made, each with what was written down when it was made last."""
    rows = (line.split("\t") for line in path.read_text("utf-8").splitlines())
    return {row[3]: tuple(row) for row in rows if len(row) == _FIELDS}


def is_compiled(output: str) -> bool:
    """Whether a file is one that a compiler, archiver or linker makes."""
    return _COMPILED.search(output) is not None


class Bound:
    """A core, and what ninja says while somebody builds upon it."""

    def __init__(self, log: Path) -> None:
        self.core = read_log(log)
        self.explained: list[str] = []

    def build(self, folder: Path, say: Callable[[str], object]) -> int:
        """Build what is left, if nothing of the core is among it; return ninja's exit code."""
        ninja = ["ninja", "-C", str(folder), "-d", "explain"]
        stream([*ninja, "-n"], self.listen)
        self.refuse()
        code = stream(ninja, lambda line: self.listen(line) or say(line))
        if not code:
            self.check(folder)
        return code

    def listen(self, line: str) -> bool:
        """Remember why something is built; whether a line says that."""
        is_reason = line.startswith(_EXPLAIN)
        if is_reason:
            self.explained.append(line.removeprefix(_EXPLAIN))
        return is_reason

    def cause(self) -> str | None:
        """Why the first file of the core has to be compiled again, if one has.

        Files that are generated are not looked at: they may well come out as they were.
        """
        for line in self.explained:
            found = _CAUSE.match(line)
            if found is not None:
                output = next(value for value in found.groups() if value is not None)
                if output in self.core and is_compiled(output):
                    return line
        return None

    def refuse(self) -> None:
        """Refuse to go on if something of the core would be compiled again."""
        cause = self.cause()
        if cause is not None:
            raise _refusal(cause)

    def check(self, build: Path) -> None:
        """See that the compiled files of the core are as the core left them."""
        now = read_log(build / ".ninja_log")
        for output, made in self.core.items():
            if is_compiled(output) and now.get(output, made) != made:
                raise _refusal(self.cause() or f"`{output}` was made again")


def _refusal(why: str) -> BuildError:
    msg = f"the core would be compiled again for this Python: {why}"
    hint = "nothing of the core may depend on Python: not its flags, nor any file that it includes"
    return BuildError(msg, hint=hint)
