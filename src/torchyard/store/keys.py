"""How things are called in a store.

blobs/ab/ab12…             the bytes of a file, or of a part of one
results/cd/cd34….json      a manifest: which blobs a job's result consists of
pins/NAME.json             results that are kept whatever happens to plans
claims/cd/cd34….json       somebody is working on this job just now
sweeps/…                   a garbage collection is going on, or was
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
    """The digest, fingerprint or name that a key was made of."""
    return key.rpartition("/")[2].removesuffix(".json")
