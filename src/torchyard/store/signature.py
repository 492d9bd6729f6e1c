"""Signatures of manifests, with a key of the machines that may add results to a store.

Without a key, write access to a store is enough to replace a result by another one.
"""

import hmac
import os
from pathlib import Path

from msgspec.structs import replace

from torchyard.errors import UsageError
from torchyard.model.canonical import canonical_json
from torchyard.model.result import Result

STORE_KEY = "TORCHYARD_STORE_KEY"
"""The variable with the path of the key's file. The key itself is in no environment and no log."""

_SHORTEST = 32


def load_store_key() -> bytes | None:
    """Return the key of the caller's stores, or None if the variable is not set."""
    path = os.environ.get(STORE_KEY)
    if not path:
        return None
    try:
        key = Path(path).read_bytes().strip()
    except OSError as error:
        msg = f"the key of the store can't be read: {error}"
        raise UsageError(msg, hint=f"{STORE_KEY} is the path of a file") from error
    if len(key) < _SHORTEST:
        msg = f"the key of the store in `{path}` has less than {_SHORTEST} bytes"
        raise UsageError(msg, hint=f"make one: (umask 077; openssl rand -hex 32 > {path})")
    return key


def unfinished_key_of(key: bytes | None) -> bytes | None:
    """Return the key for unfinished work: none of it can be passed off as a result."""
    return hmac.digest(key, b"unfinished", "sha256") if key else None


def sign(result: Result, key: bytes) -> Result:
    """Return a result with its signature: an HMAC of its canonical JSON."""
    unsigned = replace(result, signature="")
    made = hmac.new(key, canonical_json(unsigned), "sha256").hexdigest()
    return replace(unsigned, signature=made)


def is_signed(result: Result, key: bytes) -> bool:
    expected = sign(result, key).signature
    return hmac.compare_digest(expected.encode(), result.signature.encode())
