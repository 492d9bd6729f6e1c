"""Recognise known failures in lines of a log, after a cheap test that rejects most lines."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import NamedTuple

from hyperscan import Database
from msgspec.structs import replace

from torchyard.model.failure import ExtensionRemedy, Failure, LineSeverity, pattern_literals
from torchyard.toolchain.reading.source_text import reading_table

SPECIFIC = 50
"""A failure with a lower priority names no cause: compiler error, exception …"""

QUOTED_SOURCE = re.compile(r"\s*\d*\s+\| ")
_MILDER = re.compile(r"\b(?:warning|note|remark)(?: #?[\w-]+)?: (?!\S+ is defined in header)")
_MILD_STARTS = ("##[warning]", "##[notice]", "##[debug]", "+ ", "++ ", "::warning", "::notice")
"""Warnings of CI, and commands that a shell echoes."""
_LONG_VALUE = 120

_compiled = cache(re.compile)  # most patterns are never needed


class Match(NamedTuple):
    """A failure recognised in a line."""

    name: str
    failure: Failure
    start: int
    values: Mapping[str, str]
    line: str
    proven: bool = True
    """Whether all evidence that the failure requires was found."""

    @property
    def severity(self) -> LineSeverity:
        return self.failure.severity

    @property
    def specific(self) -> bool:
        return self.failure.priority >= SPECIFIC

    def fill(self, text: str, quote: Callable[[str], str] = str) -> str:
        """Replace `<name>` in a text by the matched groups."""
        for name, value in self.values.items():
            text = text.replace(f"<{name}>", quote(value))
        return text

    @property
    def title(self) -> str:
        """The title of the failure, without a final `: <name>` if the group matched nothing."""
        return self.fill(self.failure.title).partition(": <")[0]

    def fill_remedy(self) -> ExtensionRemedy | None:
        """Return the remedy for an extension, with matched groups; modules become packages."""
        found, packages = self.failure.extension, reading_table().requirements
        added = self._replace(values={k: packages.get(v, v) for k, v in self.values.items()})
        return found and replace(found, fix=self.fill(found.fix), add=added.fill(found.add))

    def fits(self, before: Callable[[], str]) -> bool:
        """Return whether the failure can occur after the text before the line."""
        pattern = self.fill(self.failure.context, re.escape)
        return not pattern or re.search(pattern, before()) is not None

    def with_evidence(self, before: Callable[[], str]) -> "Match":
        """Look for the evidence in the line and the text before it."""
        asked = self.failure.evidence
        text = f"{before()}{self.line}" if asked else ""
        return self._replace(proven=all(_compiled(pattern).search(text) for pattern in asked))


class FailurePatterns:
    """The patterns of known failures, indexed by a literal in each branch.

    Patterns are tried only on lines with such a literal, called a sign.
    """

    def __init__(self, failures: Mapping[str, Failure], more_signs: Sequence[str] = ()) -> None:
        names: dict[str, list[str]] = {sign: [] for sign in more_signs}
        anywhere = set(more_signs)
        for name, failure in failures.items():
            for literal in pattern_literals(failure.pattern):
                names.setdefault(literal.text, []).append(name)
                if not literal.first:
                    anywhere.add(literal.text)
        self._failures = failures
        self._order = {name: index for index, name in enumerate(failures)}
        self._names = list(names.values())
        self._anywhere = [text in anywhere for text in names]
        self._lengths = [len(text.encode()) for text in names]
        self._literals = Database()  # its search buffer serves one thread at a time
        self._lock = Lock()
        self._literals.compile([text.encode() for text in names], literal=True)

    def signs(self, text: bytes, begin: int, end: int) -> list[int]:
        """Return the offsets of literals in a part of a log, in ascending order.

        Certain literals count only at the start of the text, or after white space.
        """
        return sorted(
            {
                begin + start
                for literal, start in self._find(text[begin:end])
                if self._anywhere[literal] or _begins_word(text, begin + start)
            }
        )

    def suspects(self, line: str) -> set[str]:
        """Return the failures that a line may match: for most lines, none."""
        found = self._find(line.encode("utf-8", errors="replace"))
        return {name for literal, _ in found for name in self._names[literal]}

    def _find(self, text: bytes) -> list[tuple[int, int]]:
        """Return the literals in a text, and their offsets."""
        found: list[tuple[int, int]] = []

        def add(literal: int, _start: int, end: int, _flags: int, _context: object) -> None:
            found.append((literal, end - self._lengths[literal]))

        with self._lock:
            self._literals.scan(text, match_event_handler=add)
        return found

    def matches(self, line: str) -> list[Match]:
        """Return the failures that a line matches; none if it only resembles an error."""
        if (line[:1] == " " and QUOTED_SOURCE.match(line)) or line.startswith(_MILD_STARTS):
            return []
        mild = "warning" in line or "note" in line or "remark" in line
        if mild and (milder := _MILDER.search(line)):
            line = line[: milder.start()]
        names = self.suspects(line)
        if not names:
            return []
        found = list(self._search(line, names))
        if any(match.severity == LineSeverity.WRAPPER for match in found):
            # A wrapper's line looks like a separate error: `error: command 'gcc' failed`.
            return [m for m in found if m.severity == LineSeverity.WRAPPER or m.specific]
        return found

    def _search(self, line: str, names: set[str]) -> Iterator[Match]:
        for name in sorted(names, key=self._order.__getitem__):
            failure = self._failures[name]
            match = _compiled(failure.pattern).search(line)
            if match:
                values = {
                    key.rstrip("0123456789"): value[:_LONG_VALUE]
                    for key, value in match.groupdict().items()
                    if value
                }
                yield Match(name, failure, match.start(), values, line)


def _begins_word(text: bytes, at: int) -> bool:
    return at == 0 or text[at - 1] in b" \t\r\n"


def best(matches: Iterable[Match]) -> Match | None:
    """Return the first match of the highest priority."""
    mute = {LineSeverity.WRAPPER, LineSeverity.SILENT, LineSeverity.BOUNDARY}
    telling = (m for m in matches if m.severity not in mute)
    return max(telling, key=lambda match: match.failure.priority, default=None)
