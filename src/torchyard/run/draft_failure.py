"""Draft a known failure from a line of a log."""

import re
from collections.abc import Iterator

from torchyard.config.failures import SHORTEST_LITERAL
from torchyard.model.failure import Diagnosis, Failure, Found, literals

TO_DO = "TO DO"
_PRIORITY = 60
_WORDS = 4
_TITLE = 80
_STAGES = {Found.NINJA: "compile", Found.CMAKE: "configure"}
_LOCATION = re.compile(r"^(?:[^\s:]+:\d+(?::\d+)?:|[^\s:]+\(\d+\)\s*:)\s*")
"""The location of an error: `file.cpp:12:3: `, `file.cu(12): `."""
_PART = re.compile(
    r"""
      (?P<quoted> '[^']+' | "[^"]+" | `[^`']+['`] | \u2018[^\u2019]+\u2019 )
    | (?P<hex>    0x[0-9a-fA-F]+ | \b(?=[a-f]*\d)[0-9a-f]{7,64}\b )
    | (?P<path>   (?:[\w.+-]*/)+[\w.+-]+ | \b[A-Z]:\\\S+ )
    | (?P<number> \d+(?:[.,]\d+)* )
    | (?P<text>   . )
    """,
    re.VERBOSE,
)
_GENERAL = {"hex": "[0-9a-fx]+", "path": r"\S+", "number": r"[\d.,]+"}


def draft_failure(diagnosis: Diagnosis) -> tuple[str, Failure]:
    """Return a name and an entry that recognises a diagnosis by its most telling line.

    Numbers, paths, hashes and quoted names, which differ between builds, are generalised. The
    author adds cause and fix.
    """
    line = diagnosis.line.text.strip() if diagnosis.line else ""
    text = _LOCATION.sub("", line)
    pattern = "".join(_pattern(text))
    if min(map(len, literals(pattern)), default=0) < SHORTEST_LITERAL:
        pattern = _escaped(text)
    entry = Failure(
        title=text[:_TITLE],
        stage=_STAGES.get(diagnosis.found, "any"),
        kind=diagnosis.kind,
        priority=_PRIORITY,
        pattern=pattern,
        cause=f"{TO_DO}: why this happens.",
        fix=f"{TO_DO}: what to do, as commands.",
        example=line,
    )
    return _name(text), entry


def _pattern(text: str) -> Iterator[str]:
    has_name = False
    for part in _PART.finditer(text):
        kind, found = part.lastgroup or "text", part[0]
        if kind == "quoted":
            opening, closing = _escaped(found[0]), _escaped(found[-1])
            inner = f"[^{closing}]{{1,300}}"
            yield opening + (inner if has_name else f"(?P<name>{inner})") + closing
            has_name = True
        else:
            yield _GENERAL.get(kind) or _escaped(found)


def _escaped(text: str) -> str:
    return re.escape(text).replace("\\ ", " ")


def _name(text: str) -> str:
    words = re.findall(r"[a-z]{2,}", _PART.sub(_only_text, text).lower())
    return "-".join(words[:_WORDS]) or "unnamed"


def _only_text(part: re.Match[str]) -> str:
    return part[0] if part.lastgroup == "text" else " "
