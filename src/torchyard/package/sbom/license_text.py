"""Recognise licences by their texts: `data/licenses.toml`."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.values import Value

_LONGEST = 64 << 10
_WORD = re.compile(r"[a-z0-9][a-z0-9.+/-]*|-")
_STATED = re.compile(r"SPDX-License-Identifier: *([\w.+() -]*[\w.+)])")


class LicenseTable(Value):
    """Phrases that only the text of a licence has, by its SPDX expression."""

    phrases: dict[str, frozenset[str]]


@cache
def _load() -> LicenseTable:
    return parse_table("licenses.toml", read_data("licenses.toml"), LicenseTable)


def license_of_texts(paths: Iterable[Path]) -> str:
    """Return the licences that are known in texts, or "": `BSD-3-Clause AND MIT`.

    One text can be that of several licences: of a project, and of what it contains.
    """
    return " AND ".join(dict.fromkeys(name for path in paths for name in _licenses_of(path)))


def _licenses_of(path: Path) -> list[str]:
    with path.open("rb") as file:
        text = file.read(_LONGEST).decode(errors="replace")
    if stated := _STATED.findall(text):
        return stated
    words = " ".join(_WORD.findall(text.lower()))
    rows = _load().phrases.items()
    found = {name: known for name, known in rows if all(phrase in words for phrase in known)}
    return [name for name in found if not any(found[name] < other for other in found.values())]
