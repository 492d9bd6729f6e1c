"""Suggests the nearest known name for a misspelt one."""

from collections.abc import Iterable

_FAR = 0.5
"""Maximum share of a name's letters that may differ for a suggestion."""


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the known name nearest to a word, or None if all are too different."""
    names = list(choices)
    best = min(names, key=lambda name: _rank(word.lower(), name.lower()), default=None)
    if best is None or _mistakes(word.lower(), best.lower()) > max(len(word), len(best)) * _FAR:
        return None
    return best


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return a hint: the nearest name, or all names if none is near."""
    names = list(choices)
    near = nearest(word, names)
    return f"did you mean `{near}`?" if near else f"known here: {', '.join(names)}"


def _rank(word: str, name: str) -> tuple[float, int]:
    """Return a sort key: fewest mistakes first, then the longest common prefix."""
    alike = [a == b for a, b in zip(word, name, strict=False)]
    return _mistakes(word, name), -(alike.index(False) if False in alike else len(alike))


def _mistakes(word: str, name: str) -> float:
    """Return the number of letters added, lost or changed; a swap counts as half a mistake.

    This is the optimal string alignment distance.
    """
    before: list[float] = []
    row: list[float] = [*range(len(name) + 1)]
    for i, letter in enumerate(word):
        older, before, row = before, row, [i + 1]
        for j, wanted in enumerate(name):
            cost = min(before[j] + (letter != wanted), before[j + 1] + 1, row[j] + 1)
            if i and j and letter == name[j - 1] and word[i - 1] == wanted:
                cost = min(cost, older[j - 1] + 0.5)
            row.append(cost)
    return row[-1]
