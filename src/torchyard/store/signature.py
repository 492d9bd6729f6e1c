"""Signatures of manifests, by whoever made the result.

Without a trust file, anyone with write access to a store can replace a result.
"""

from msgspec.structs import replace

from torchyard.model.canonical import canonical_json
from torchyard.model.result import Result
from torchyard.store.makers import Signer, Trust, verify_signature

_RESULT = "application/vnd.torchyard.result+json"
_UNFINISHED = "application/vnd.torchyard.unfinished+json"
"""Of another kind, so that unfinished work can't be passed off as a result."""


def sign_result(result: Result, signer: Signer, *, finished: bool = True) -> Result:
    """Return a result with its maker's key, and a signature of its canonical JSON."""
    named = replace(result, key=signer.key, signature="")
    kind = _RESULT if finished else _UNFINISHED
    return replace(named, signature=signer.sign(kind, canonical_json(named)))


def signature_fault(result: Result, trust: Trust, *, finished: bool = True) -> str | None:
    """Return why a result does not count, or None if a maker trusted for its stage signed it."""
    if why := trust.distrust(result.key, result.spec.task.stage):
        return why
    data = canonical_json(replace(result, signature=""))
    kind = _RESULT if finished else _UNFINISHED
    is_true = verify_signature(result.key, kind, data, result.signature)
    return None if is_true else f"it was changed after {trust.name_of(result.key)} signed it"
