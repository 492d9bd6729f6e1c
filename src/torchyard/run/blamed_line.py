"""Find the line of the project that a diagnosis blames, in the directory of its job."""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from torchyard.errors import HostError, Span
from torchyard.host.untrusted_tree import EntryKind, UntrustedTree
from torchyard.model.failure import Diagnosis, SourceLocation

_ROOTS = ("build", "inputs/source")
"""Where the files of a project are in the directory of a job."""
_SUFFIXES = (".py", ".toml", ".cfg", ".txt", ".cmake", ".cpp", ".cc", ".cu", ".c", ".h", ".cuh")
_GENERATED = re.compile(r"^(?:build|dist)/|\.egg-info/|/CMakeFiles/|\.txt/|(?<!CMakeLists)\.txt$")
_MOST = 20_000
"""How many entries of a directory are looked at."""
_LARGEST = 1 << 20


def blamed_line(diagnosis: Diagnosis, job: Path, work: str) -> Span | None:
    """Return the line that the known failure looks for, or else the one that its log names.

    `work` is the directory of the job as its steps see it.
    """
    if diagnosis.find:
        with suppress(HostError, OSError), UntrustedTree(job, _ROOTS[0]) as tree:
            if found := next(_search(tree, re.compile(diagnosis.find, re.MULTILINE)), None):
                return found
    place = diagnosis.where or SourceLocation(file="", line=1)
    for root in _ROOTS:
        name = place.file.removeprefix(f"{work}/").removeprefix(f"{root}/")
        with suppress(HostError, OSError, IndexError), UntrustedTree(job, root) as tree:
            text = _read(tree, name).splitlines()[place.line - 1].rstrip()
            start = place.column or len(text) - len(text.lstrip()) + 1
            length = 1 if place.column else len(text.strip())
            return Span(name, place.line, start, length, text)
    return None


def _search(tree: UntrustedTree, wanted: re.Pattern[str]) -> Iterator[Span]:
    """Yield the first line of each file that matches; of files near the top first."""
    names = [
        entry.path
        for entry in islice(tree.walk(partly=True), _MOST)
        if entry.kind is EntryKind.FILE
        and entry.path.endswith(_SUFFIXES)
        and not _GENERATED.search(entry.path)
    ]
    for name in sorted(names, key=lambda name: (name.count("/"), name)):
        text = _read(tree, name)
        if found := wanted.search(text):
            number = text.count("\n", 0, found.start()) + 1
            line = text.splitlines()[number - 1]
            column = found.start() - text.rfind("\n", 0, found.start())
            yield Span(name, number, column, len(found[0].splitlines()[0]), line)


def _read(tree: UntrustedTree, name: str) -> str:
    with tree.open_file(name) as file:
        return file.read(_LARGEST).decode(errors="replace")
