"""How much of each result is shared with others."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from torchyard.model.result import Result


class Holding(NamedTuple):
    """A result, and the bytes of those of its files that no other result has."""

    result: Result
    own: int


def holdings(results: Iterable[Result]) -> tuple[list[Holding], int]:
    """Return results sorted by identifier, and the bytes that they take together."""
    found = sorted(results, key=lambda result: (result.id, result.started))
    users = Counter(digest for result in found for digest in result.blobs())
    sizes = {digest: size for result in found for digest, size in result.blobs().items()}
    held = [
        Holding(r, sum(f.size for f in r.tree.files if all(users[b.digest] == 1 for b in f.blobs)))
        for r in found
    ]
    return held, sum(sizes.values())
