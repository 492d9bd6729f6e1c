"""The keys of a store.

blobs/ab/ab12…             the bytes of a file, or of a part of one
results/cd/cd34….json      a manifest: the blobs of a job's result
pins/NAME.json             results that garbage collection keeps
claims/cd/cd34….json       a process is working on this job
unfinished/cd/cd34….json   what a job had finished when its time ran out
units/ef/ef56….json        the memory of a job's units, by a digest of the job's name
reads/0a/0a12….json        results by what their jobs read, by a digest of the jobs' settings
sweeps/…                   the leases of garbage collections
"""

import re

from torchyard.errors import StoreError

BLOBS = "blobs/"
RESULTS = "results/"
PINS = "pins/"
CLAIMS = "claims/"
UNFINISHED = "unfinished/"
UNITS = "units/"
READS = "reads/"
SWEEPS = "sweeps/"


_DIGEST = re.compile("[0-9a-f]{64}")


def digest_path(digest: str) -> str:
    """Return the path of a digest, `ab/ab12…`; raise StoreError if it is not a digest."""
    if not _DIGEST.fullmatch(digest):
        msg = f"`{digest}` is not a digest, so no object of a store has this name"
        raise StoreError(
            msg, hint="do not use the manifest with it: it may have been tampered with"
        )
    return f"{digest[:2]}/{digest}"


def blob_key(digest: str) -> str:
    return f"{BLOBS}{digest_path(digest)}"


def result_key(fingerprint: str) -> str:
    return f"{RESULTS}{digest_path(fingerprint)}.json"


def claim_key(fingerprint: str) -> str:
    return f"{CLAIMS}{digest_path(fingerprint)}.json"


def unfinished_key(fingerprint: str) -> str:
    return f"{UNFINISHED}{digest_path(fingerprint)}.json"


def units_key(digest: str) -> str:
    return f"{UNITS}{digest_path(digest)}.json"


def same_reads_key(digest: str) -> str:
    return f"{READS}{digest_path(digest)}.json"


def pin_key(name: str) -> str:
    return f"{PINS}{name}.json"


def key_name(key: str) -> str:
    """Return the digest, fingerprint or name in a key."""
    return key.rpartition("/")[2].removesuffix(".json")
