"""Groups of lines that CI services fold away until somebody wants to read them."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from time import time

Fold = Callable[[str, Iterable[str]], Iterator[str]]


def fold_style() -> Fold | None:
    """How the CI service that we run in folds lines; None if we run in none that is known."""
    if os.environ.get("GITHUB_ACTIONS"):
        return github
    if os.environ.get("GITLAB_CI"):
        return gitlab
    return None


def github(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"::group::{title}"
    # A line of a log must not be taken for a command to the service.
    yield from (re.sub(r"^(\s*)::", r"\1: :", line) for line in lines)
    yield "::endgroup::"


def gitlab(title: str, lines: Iterable[str]) -> Iterator[str]:
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", title)
    yield f"\x1b[0Ksection_start:{time():.0f}:{name}[collapsed=true]\r\x1b[0K{title}"
    yield from lines
    yield f"\x1b[0Ksection_end:{time():.0f}:{name}\r\x1b[0K"
