"""The nearest name that would have been right."""

from collections.abc import Iterable

_FAR = 0.5
"""A name that needs more than this share of its letters changed is not what was meant."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The name with the fewest typing mistakes between it and a word, if they are few."""
    names = list(known)
    best = min(names, key=lambda name: _rank(word.lower(), name.lower()), default=None)
    if best is None or _mistakes(word.lower(), best.lower()) > max(len(word), len(best)) * _FAR:
        return None
    return best


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Write a hint: the nearest name, or all of them if nothing comes near."""
    names = list(known)
    near = nearest(word, names)
    return f"did you mean `{near}`?" if near else f"known here: {', '.join(names)}"


def _rank(word: str, name: str) -> tuple[float, int]:
    """Few mistakes are best; among equals, a long common beginning."""
    alike = [a == b for a, b in zip(word, name, strict=False)]
    return _mistakes(word, name), -(alike.index(False) if False in alike else len(alike))


def _mistakes(word: str, name: str) -> float:
    """Letters added, lost or changed; two that are swapped are only half a mistake.

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
