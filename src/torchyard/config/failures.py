"""Load the table of known failures, which only failed jobs need, apart from `load_tables`."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from torchyard.config.tables import parse_data
from torchyard.errors import DataError
from torchyard.host.files import read_data
from torchyard.model.failure import Failure, LineSeverity, literals

SHORTEST_LITERAL = 4
"""Minimum length of a literal in each branch of a pattern; shorter ones match too many lines."""

_UNEXPLAINED = {LineSeverity.WRAPPER, LineSeverity.BOUNDARY}


@cache
def load_failures() -> Mapping[str, Failure]:
    """Return the table, with all rows checked."""
    failures = parse_data("failures", read_data("failures.toml"), Failure)
    check_failures(failures)
    return failures


def check_failures(failures: Mapping[str, Failure]) -> None:
    """Fail if a row can never match, or matching it is slow."""
    for name, failure in failures.items():
        for problem in _problems(failure):
            msg = f"the failure `{name}` {problem}"
            raise DataError(msg)


def _problems(failure: Failure) -> Iterator[str]:
    try:
        pattern = re.compile(failure.pattern)
    except re.error as error:
        yield f"has an invalid pattern: {error}"
        return
    whole = " ".join(failure.example.split())
    if not any(pattern.search(text) for text in (whole, *failure.example.splitlines())):
        yield "has an example that its pattern does not match"
    for text in (failure.context, failure.find, *failure.evidence):
        try:
            re.compile(text)
        except re.error as error:
            yield f"has an invalid context, evidence or find: {error}"
    if min(map(len, literals(failure.pattern))) < SHORTEST_LITERAL:
        yield "has a pattern with a branch without a literal"
    if not (failure.cause and failure.fix) and failure.severity not in _UNEXPLAINED:
        yield "has no cause or no fix"
