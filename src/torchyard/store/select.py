"""Select results by the names of their jobs, or by fingerprint."""

import re
from collections.abc import Iterator, Sequence

from torchyard.errors import SelectionError
from torchyard.model.result import Result
from torchyard.model.selector import named_jobs
from torchyard.store.store import Store, Unusable

_FINGERPRINT = re.compile(r"[0-9a-f]{6,64}")


def select_results(
    store: Store, selectors: Sequence[str], unusable: Unusable | None = None
) -> Iterator[Result]:
    """Yield the results selected by their jobs' names or by fingerprint prefix; by default all.

    Unusable manifests are added to `unusable`; without it, they raise StoreError.
    """
    prefixes, words = _split(selectors)
    names = list(store.fingerprints())
    chosen = [name for name in names if name.startswith(prefixes)]
    if words:
        jobs = {result.fingerprint: result.id for result in store.results(names, unusable)}
        try:
            chosen += named_jobs(jobs, words)
        except SelectionError as error:
            if unusable:
                return
            msg = f"the store `{store.url}` has no result of it: {error}"
            raise SelectionError(msg, hint=error.diagnostics[0].hint) from error
    elif prefixes and not chosen:
        msg = f"the store `{store.url}` has no result of {', '.join(prefixes)}"
        raise SelectionError(msg, hint="`torchyard store ls` lists the results")
    yield from store.results(dict.fromkeys(chosen) if selectors else names, unusable)


def select_unfinished(store: Store, selectors: Sequence[str]) -> Iterator[Result]:
    """Yield the unfinished work of jobs selected in the same way."""
    prefixes, words = _split(selectors)
    works = list(store.all_unfinished())
    try:
        jobs = {work.fingerprint: work.id for work in works}
        named = named_jobs(jobs, words) if words or not prefixes else []
    except SelectionError:  # only finished results are meant
        named = []
    for work in works:
        if work.fingerprint in named or work.fingerprint.startswith(prefixes):
            yield work


def _split(selectors: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the prefixes of fingerprints, and the words of a selector."""
    prefixes = tuple(s for s in selectors if _FINGERPRINT.fullmatch(s))
    return prefixes, [s for s in selectors if s not in prefixes]
