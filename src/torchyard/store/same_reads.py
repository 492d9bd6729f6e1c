"""Results by what their jobs read: found for inputs that differ only in other files.

A record in the store leads to them. It is a hint: a result is only used if its manifest, which
its maker signed, has the same name. Without a record, a job runs.
"""

from contextlib import suppress

import msgspec

from torchyard.errors import TorchyardError
from torchyard.model.reads import InputFiles, reads_key, spec_name
from torchyard.model.result import Reads, Result
from torchyard.model.values import UNDECODABLE, Digest, Value
from torchyard.store.keys import same_reads_key
from torchyard.store.objects import Objects
from torchyard.store.store import Store

_LARGEST = 1 << 26
"""Maximum bytes of a record; a set of PyTorch's takes half a megabyte."""
_SETS, _RESULTS = 8, 64
"""The most sets of files in a record, and of results with one: those that were used last."""


class ReadSet(Value, kw_only=True):
    """Files that jobs have read, and the fingerprints of their results by their second name.

    A record has those of a job's settings, the last one first.
    """

    files: tuple[str, ...]
    results: dict[str, Digest]


def record_key(result: Result) -> str:
    """Return the key of the record that leads to a result."""
    return same_reads_key(spec_name(result.spec))


def read_record(objects: Objects, key: str) -> tuple[ReadSet, ...]:
    """Return the sets of a record; none if it can't be used."""
    with suppress(TorchyardError, OSError, *UNDECODABLE):
        meta = objects.head(key)
        if meta is not None and meta.size <= _LARGEST and (data := objects.read(key)):
            return msgspec.json.decode(data, type=tuple[ReadSet, ...])
    return ()


def remember_reads(objects: Objects, result: Result) -> None:
    """Record what the job of a result has read; ignore failures."""
    if result.reads is None:
        return
    key, files = record_key(result), result.reads.files
    sets = read_record(objects, key)
    known = next((found.results for found in sets if found.files == files), {})
    others = {name: known[name] for name in known if name != result.reads.key}
    results = dict([*others.items(), (result.reads.key, result.fingerprint)][-_RESULTS:])
    latest = (ReadSet(files=files, results=results), *(s for s in sets if s.files != files))
    with suppress(TorchyardError, OSError):
        objects.write(key, msgspec.json.encode(latest[:_SETS]))


def find_same(store: Store, name: str, inputs: InputFiles) -> Result | None:
    """Return a result for these settings whose job read nothing that these inputs change."""
    for known in read_record(store.objects, same_reads_key(name)):
        key = reads_key(name, inputs, known.files)
        if key is None or key not in known.results:
            continue
        with suppress(TorchyardError):  # nothing depends on it
            found = store.find(known.results[key])
            if found and spec_name(found.spec) == name and _fits(found.reads, name, inputs):
                return found
    return None


def _fits(reads: Reads | None, name: str, inputs: InputFiles) -> bool:
    """Return whether a manifest says of these inputs what the record says."""
    return (
        reads is not None
        and reads_key(name, inputs, reads.files) == reads.key
        and inputs.files.keys() >= {*reads.carried.values()}
    )
