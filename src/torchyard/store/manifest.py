"""Manifests as bytes: written in one form, and accepted only if nothing in them can do harm.

Write access to a store is enough to put anything into a manifest, such as a path that leads out of
a directory. So every manifest is examined here when it is read; its users need not check again.
"""

from collections.abc import Iterable, Iterator

import msgspec

from torchyard.errors import StoreError
from torchyard.model.recipe import Stage
from torchyard.model.result import Result, Tree
from torchyard.model.values import UNDECODABLE
from torchyard.store.makers import Trust
from torchyard.store.signature import signature_fault

_DECODER = msgspec.json.Decoder(Result)
"""Created at import: msgspec 0.22 crashes if two threads use a new class at once."""

_LONGEST = 4095
"""Maximum bytes of a path or a link's target on Linux."""

_DELIVERED = (Stage.PACKAGE, Stage.CHECK, Stage.SMOKE, Stage.PUBLISH)
"""Stages whose results torchyard itself reads: a link in them may not lead to other files."""


def decode_result(
    data: bytes, fingerprint: str, trust: Trust | None = None, *, finished: bool = True
) -> Result:
    """Decode the manifest of a fingerprint; raise StoreError if it is unusable.

    Links of unfinished work may lead anywhere: only the steps of its own job read it.
    """
    try:
        result = _DECODER.decode(data)
    except UNDECODABLE as error:
        raise _unusable(fingerprint, f"can't be read: {error}") from error
    task = result.spec.task if result.spec.tasks else None
    is_true = task is not None and result.spec.is_true
    if task is None or not (result.fingerprint == task.fingerprint == fingerprint and is_true):
        msg = f"the manifest stored under {fingerprint} belongs to another job"
        raise StoreError(msg, hint=_HINT)
    if why := tree_fault(result.delivery, closed=finished and task.stage in _DELIVERED):
        raise _unusable(fingerprint, f"can't be used: {why}")
    if trust and (why := signature_fault(result, trust, finished=finished)):
        raise _unusable(fingerprint, f"can't be used: {why}")
    return result


_HINT = "`torchyard store verify --remove` takes it out"


def _unusable(fingerprint: str, why: str) -> StoreError:
    return StoreError(f"the manifest of {fingerprint} {why}", hint=_HINT)


def tree_fault(tree: Tree, *, closed: bool = False) -> str | None:
    """Return why a tree can't be laid out, or None.

    With `closed`, its links may not lead out of it.
    """
    return next(_faults(tree, closed=closed), None)


def _faults(tree: Tree, *, closed: bool) -> Iterator[str]:
    paths = [*(file.path for file in tree.files), *tree.links]
    ends = set(paths)
    seen: set[str] = set()
    for path in (*paths, *tree.empty):
        if not is_inside(path):
            yield f"`{path}` would not stay in its directory"
        if path in seen:
            yield f"it has `{path}` twice"
        seen.add(path)
    for above in {parent for path in seen for parent in _parents(path)} & ends:
        yield f"`{above}` is a file or a link, and has files below it"
    for file in tree.files:
        if file.size != sum(part.size for part in file.blobs):
            yield f"the size of `{file.path}` is not that of its parts"
    for path, target in tree.links.items():
        if not target or "\0" in target or len(target.encode()) > _LONGEST:
            yield f"the link `{path}` can't be made"
        elif closed and not _leads_inside(path, target):
            yield f"the link `{path}` leads out of its directory"


def is_inside(path: str) -> bool:
    """Return whether a path is normalised and stays below its directory."""
    parts = path.split("/")
    bad = any(part in ("", ".", "..") for part in parts) or "\0" in path
    return not bad and len(path.encode()) <= _LONGEST


def _parents(path: str) -> Iterable[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _leads_inside(path: str, target: str) -> bool:
    """Return whether a link stays in its tree, provided that all links of the tree do.

    `..` may not follow a name: the name could be that of a link.
    """
    parts = target.split("/")
    ups = next((n for n, part in enumerate(parts) if part != ".."), len(parts))
    return not target.startswith("/") and ".." not in parts[ups:] and ups <= path.count("/")
