"""Groups of lines that CI services show collapsed."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from time import time

Fold = Callable[[str, Iterable[str]], Iterator[str]]


def fold_style() -> Fold | None:
    """Return the fold syntax of the CI service we run in, or None outside a known one."""
    if os.environ.get("GITHUB_ACTIONS"):
        return github
    if os.environ.get("GITLAB_CI"):
        return gitlab
    return None


def github(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"::group::{title}"
    # A log line must not be interpreted as a workflow command.
    yield from (re.sub(r"^(\s*)::", r"\1: :", line) for line in lines)
    yield "::endgroup::"


def gitlab(title: str, lines: Iterable[str]) -> Iterator[str]:
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", title)
    yield f"\x1b[0Ksection_start:{time():.0f}:{name}[collapsed=true]\r\x1b[0K{title}"
    yield from lines
    yield f"\x1b[0Ksection_end:{time():.0f}:{name}\r\x1b[0K"
