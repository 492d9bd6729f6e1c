"""A wheel with a genuine provenance: CircleCI's example, from the tests of pypi-attestations."""

import json
import shutil
from pathlib import Path

PROJECT = "circleci-sign-publish-example"
WHEEL = "circleci_sign_publish_example-0.0.1.dev137-py3-none-any.whl"

_FOLDER = Path(__file__).parent / "attested"


def attested_wheel(folder: Path) -> Path:
    """Copy the wheel and its provenance into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in _FOLDER.iterdir():
        shutil.copy(path, folder)
    return folder / WHEEL


def genuine_provenance() -> bytes:
    return (_FOLDER / f"{WHEEL}.provenance").read_bytes()


def forged_provenance() -> bytes:
    """A provenance that claims to be of pytorch/pytorch, without being signed by it."""
    provenance = json.loads(genuine_provenance())
    publisher = {"kind": "GitHub", "repository": "pytorch/pytorch", "workflow": "release.yml"}
    provenance["attestation_bundles"][0]["publisher"] = publisher
    return json.dumps(provenance).encode()
