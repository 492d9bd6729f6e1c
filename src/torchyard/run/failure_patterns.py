"""Recognise known failures in lines of a log, with a cheap test that dismisses most lines."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from torchyard.model.failure import Failure, LineSeverity, literals

SPECIFIC = 50
"""A failure with a lower priority names no cause of its own: compiler error, exception …"""

_QUOTED_SOURCE = re.compile(r"\s*\d*\s+\| ")
_MILDER = re.compile(r"\b(?:warning|note|remark)(?: #?[\w-]+)?: ")
_LONG_VALUE = 120
_STEM = 5
"""Shorter stems would occur in too many lines that are no errors."""

_compiled = cache(re.compile)  # most patterns are never needed


class Match(NamedTuple):
    """A failure that was recognised in a line."""

    name: str
    failure: Failure
    start: int
    values: Mapping[str, str]

    @property
    def severity(self) -> LineSeverity:
        return self.failure.severity

    @property
    def specific(self) -> bool:
        return self.failure.priority >= SPECIFIC

    def fill(self, text: str) -> str:
        """Replace `<name>` in a text by what was matched."""
        for name, value in self.values.items():
            text = text.replace(f"<{name}>", value)
        return text


class FailurePatterns:
    """The patterns of known failures, indexed for searching.

    Nearly all lines contain none of a few stems, such as `error`, and are dismissed. If a line
    has a stem, the literals with that stem are tried, and only then the patterns.
    """

    def __init__(self, failures: Mapping[str, Failure]) -> None:
        names: dict[str, list[str]] = {}
        for name, failure in failures.items():
            for literal in literals(failure.pattern):
                names.setdefault(literal, []).append(name)
        self._failures = failures
        self._order = {name: place for place, name in enumerate(failures)}
        self._anywhere = _index({k: v for k, v in names.items() if ":" not in k})
        self._with_colon = [*self._anywhere, *_index({k: v for k, v in names.items() if ":" in k})]

    def suspects(self, line: str) -> list[str]:
        """Return the failures that a line may match; for most lines, none."""
        low = line.lower()
        return [
            name
            for stem, literals_of in (self._with_colon if ":" in line else self._anywhere)
            if stem in low
            for literal, names in literals_of
            if literal in line
            for name in names
        ]

    def matches(self, line: str) -> list[Match]:
        """Return the failures that a line matches; none if it only looks like an error."""
        if line[:1] == " " and _QUOTED_SOURCE.match(line):
            return []
        mild = "warning" in line or "note" in line or "remark" in line
        if mild and (milder := _MILDER.search(line)):
            line = line[: milder.start()]
        names = self.suspects(line)
        if not names:
            return []
        found = list(self._search(line, names))
        if any(match.severity == LineSeverity.WRAPPER for match in found):
            # A wrapper's line looks like an error of its own: `error: command 'gcc' failed`.
            return [m for m in found if m.severity == LineSeverity.WRAPPER or m.specific]
        return found

    def _search(self, line: str, names: list[str]) -> Iterator[Match]:
        for name in sorted(set(names), key=self._order.__getitem__):
            failure = self._failures[name]
            match = _compiled(failure.pattern).search(line)
            if match:
                values = {
                    key.rstrip("0123456789"): value[:_LONG_VALUE]
                    for key, value in match.groupdict().items()
                    if value
                }
                yield Match(name, failure, match.start(), values)


def _index(names: Mapping[str, list[str]]) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """Return the literals by stem, each with the failures that it may be a sign of."""
    return [(stem, [(word, names[word]) for word in words]) for stem, words in stems(names).items()]


def stems(words: Iterable[str]) -> dict[str, list[str]]:
    """Return a few short lower-case strings that cover all words, each with its words."""
    left = {word: _parts(word.lower()) for word in words}
    cover: dict[str, list[str]] = {}
    while left:
        counts = Counter(part for parts in left.values() for part in parts)
        stem = max(counts, key=lambda part: (counts[part], part))
        cover[stem] = [word for word, parts in left.items() if stem in parts]
        left = {word: parts for word, parts in left.items() if stem not in parts}
    return cover


def _parts(word: str) -> set[str]:
    return {word[i : i + _STEM] for i in range(max(1, len(word) - _STEM + 1))}


def best(matches: Iterable[Match]) -> Match | None:
    """Return the match with the highest priority; of equals the first."""
    telling = (m for m in matches if m.severity != LineSeverity.WRAPPER)
    return max(telling, key=lambda match: match.failure.priority, default=None)
