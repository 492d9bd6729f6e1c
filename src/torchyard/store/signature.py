"""Signatures of manifests, by a key that only machines with write permission have.

Without a key, anyone with access to a store's files can replace a result.
"""

import hmac
import os
import stat
from pathlib import Path

from msgspec.structs import replace

from torchyard.errors import UsageError
from torchyard.model.canonical import canonical_json
from torchyard.model.result import Result

STORE_KEY = "TORCHYARD_STORE_KEY"
"""The variable with the path of the key's file; no environment or log contains the key itself."""

_SHORTEST = 32
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def load_store_key() -> bytes | None:
    """Return the key named by the environment, or None if the variable is not set."""
    path = os.environ.get(STORE_KEY)
    if not path:
        return None
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            key = file.read().strip()
    except OSError as error:
        msg = f"the key of the store can't be read: {error}"
        raise UsageError(msg, hint=f"set {STORE_KEY} to the path of a file") from error
    if mode & _OTHERS_WRITE:
        msg = f"the key of the store in `{path}` can be replaced by other users"
        raise UsageError(msg, hint=f"make a new one, and only yours: chmod 600 {path}")
    if len(key) < _SHORTEST:
        msg = f"the key of the store in `{path}` has less than {_SHORTEST} bytes"
        raise UsageError(msg, hint=f"make one: (umask 077; openssl rand -hex 32 > {path})")
    return key


def unfinished_key_of(key: bytes | None) -> bytes | None:
    """Return the key for unfinished work, so that it can't be passed off as a result."""
    return hmac.digest(key, b"unfinished", "sha256") if key else None


def sign(result: Result, key: bytes) -> Result:
    """Return a result with its signature: an HMAC of its canonical JSON."""
    unsigned = replace(result, signature="")
    made = hmac.new(key, canonical_json(unsigned), "sha256").hexdigest()
    return replace(unsigned, signature=made)


def is_signed(result: Result, key: bytes) -> bool:
    expected = sign(result, key).signature
    return hmac.compare_digest(expected.encode(), result.signature.encode())
