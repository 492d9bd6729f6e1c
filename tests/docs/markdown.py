"""Reads the commands, with their output, from the Markdown pages of the documentation."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.support.helpers import ROOT

FENCE = re.compile(
    r"^(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<language>\w*).*?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
PROMPT = "$ "
CONTINUED = "\\"
ANYTHING = "…"


class Typed(NamedTuple):
    """A command of a page, and the output that the page shows below it."""

    page: str
    line: int
    text: str
    shown: tuple[str, ...]

    @property
    def words(self) -> str:
        """The command without a comment, on one line."""
        return re.sub(r"\s+", " ", re.sub(r"\s+#\s.*|\\\n", " ", self.text)).strip()


def pages() -> Iterator[str]:
    """Yield the paths of all pages that people read; the reference is generated."""
    yield from ("README.md", "CONTRIBUTING.md", "farm/README.md")
    for path in sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith("docs/reference/"):
            yield name


def commands(page: str) -> list[Typed]:
    return list(commands_in(page, (ROOT / page).read_text(encoding="utf-8")))


def commands_in(page: str, text: str) -> Iterator[Typed]:
    """Yield the commands of all blocks of console in the order of a page.

    A block that a comment gives a file name is a command, too: it writes that file.
    """
    for block in FENCE.finditer(text):
        first = text.count("\n", 0, block.start("text")) + 1
        if block["file"]:
            write = f"mkdir -p $(dirname {block['file']}) && cat >{block['file']} <<'END'\n"
            yield Typed(page, first, f"{write}{block['text']}END", ())
        if block["language"] != "console":
            continue
        lines = block["text"].splitlines()
        starts = [at for at, line in enumerate(lines) if line.startswith(PROMPT)]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            last = start
            while lines[last].endswith(CONTINUED):
                last += 1
            command = "\n".join([lines[start].removeprefix(PROMPT), *lines[start + 1 : last + 1]])
            yield Typed(page, first + start, command, tuple(lines[last + 1 : end]))


def difference(shown: Sequence[str], printed: Sequence[str]) -> str | None:
    """Return how output differs from what a page shows, or None if it does not.

    A line `…` stands for any lines, `…` within a line for any characters, and one blank for any
    number of them: columns are as wide as their contents.
    """
    wanted = [" ".join(line.split()) for line in shown]
    pattern = "".join(
        r"(?:.*\n)*?" if line == ANYTHING else _line(line) for line in _trimmed(wanted)
    )
    found = "".join(f"{' '.join(line.split())}\n" for line in _trimmed(list(printed)))
    if re.fullmatch(pattern, found):
        return None
    return "\n".join(["the page shows", *shown, "it printed", *printed])


def missing_line(shown: Sequence[str], printed: Sequence[str]) -> str | None:
    """Return the first line that output lacks; it has the others in order, among any others."""
    rest = iter([f"{' '.join(line.split())}\n" for line in printed])
    for line in shown:
        pattern = re.compile(_line(" ".join(line.split())))
        if not any(map(pattern.fullmatch, rest)):
            return line
    return None


def _line(text: str) -> str:
    escaped = re.escape(text).replace(rf"\ {ANYTHING}\ ", r"(?:\ .*?)?\ ")
    return escaped.replace(ANYTHING, ".*?") + r"\n"


def _trimmed(lines: list[str]) -> list[str]:
    """Return lines without empty ones at the end."""
    return lines[: max((at for at, line in enumerate(lines, 1) if line.strip()), default=0)]
