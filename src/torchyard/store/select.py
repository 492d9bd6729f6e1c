"""Select results by the identifiers of their jobs, or by fingerprint."""

import re
from collections.abc import Iterator, Sequence

from torchyard.errors import SelectionError
from torchyard.model.matrix import any_match
from torchyard.model.result import Result
from torchyard.store.store import Store, Unusable

_FINGERPRINT = re.compile(r"[0-9a-f]{6,64}")


def select_results(
    store: Store, selectors: Sequence[str], unusable: Unusable | None = None
) -> Iterator[Result]:
    """Yield results whose job or cell matches a glob or whose fingerprint has a prefix; or all.

    `unusable` takes manifests that can't be used; without it, they raise StoreError.
    """
    prefixes, globs = _split(selectors)
    names = list(store.fingerprints())
    if prefixes and not globs:
        names = [name for name in names if name.startswith(prefixes)]
    found = False
    for result in store.results(names, unusable):
        if _is_selected(result, selectors):
            found = True
            yield result
    if selectors and not found and not unusable:
        msg = f"the store `{store.url}` has no result of {', '.join(selectors)}"
        raise SelectionError(msg, hint="`torchyard store ls` lists the results")


def select_unfinished(store: Store, selectors: Sequence[str]) -> Iterator[Result]:
    """Yield the unfinished work of jobs that are chosen in the same way."""
    return (work for work in store.all_unfinished() if _is_selected(work, selectors))


def _is_selected(result: Result, selectors: Sequence[str]) -> bool:
    prefixes, globs = _split(selectors)
    return (
        not selectors
        or any_match(result.id, globs)
        or any_match(result.order.task.cell, globs)
        or result.fingerprint.startswith(prefixes)
    )


def _split(selectors: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the prefixes of fingerprints, and the globs."""
    prefixes = tuple(s for s in selectors if _FINGERPRINT.fullmatch(s))
    return prefixes, [s for s in selectors if s not in prefixes]
