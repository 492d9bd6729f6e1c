"""The keys of a store.

blobs/ab/ab12…             the bytes of a file, or of a part of one
results/cd/cd34….json      a manifest: which blobs a job's result consists of
pins/NAME.json             results that garbage collection keeps
claims/cd/cd34….json       a process is working on this job
sweeps/…                   the leases of garbage collections
"""

BLOBS = "blobs/"
RESULTS = "results/"
PINS = "pins/"
CLAIMS = "claims/"
SWEEPS = "sweeps/"


def blob_key(digest: str) -> str:
    return f"{BLOBS}{digest[:2]}/{digest}"


def result_key(fingerprint: str) -> str:
    return f"{RESULTS}{fingerprint[:2]}/{fingerprint}.json"


def claim_key(fingerprint: str) -> str:
    return f"{CLAIMS}{fingerprint[:2]}/{fingerprint}.json"


def pin_key(name: str) -> str:
    return f"{PINS}{name}.json"


def key_name(key: str) -> str:
    """Return the digest, fingerprint or name in a key."""
    return key.rpartition("/")[2].removesuffix(".json")
