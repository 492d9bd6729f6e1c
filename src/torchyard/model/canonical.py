"""One way to turn a value into bytes, and those bytes into a fingerprint.

Canonical JSON is UTF-8, without white space, with the keys of every object sorted. Two equal
values have equal bytes on every machine, so their sha256 can identify a job's dependencies.
"""

from hashlib import sha256

import msgspec

_ENCODER = msgspec.json.Encoder(order="sorted")


def canonical_json(value: object) -> bytes:
    return _ENCODER.encode(value)


def fingerprint(value: object) -> str:
    return sha256(canonical_json(value)).hexdigest()
