"""The example's plan, byte for byte: its document, and the fingerprint of every job."""

from hashlib import sha256

import pytest
from tests.helpers import EXAMPLE, plan_of

from torchyard.features.plan.use_case import plan_report
from torchyard.plan import settings
from torchyard.plan.select import PlanSelection
from torchyard.terminal.json_output import encode

GOLDEN = {
    None: (
        "86e4387e4c81e830d6820d3e364334f8ca6faae1b214c10cb351ba43f3aaaeca",
        "3420e35e32b767eed93552dde7998a9135e5f1142b177b53e1174b748d08bf3a",
    ),
    "pr": (
        "66c247b680d6d46a3cd7f0fd5ab7d9a6f40eb2e3481f5b899ac732ef35438096",
        "221e6c2c29e627fea30776f02e697abff014d1e96df1b1ddfe5580ba8a9ebe16",
    ),
    "nightly": (
        "aee2325fb94b6c9b79e1bab64d220ad9eebba585eaa45a386f883e48b6165702",
        "b22cfe2689f6bd722d98d4328486a0f4c32806a49c338a72bd93bbc727bbd4df",
    ),
    "release": (
        "503ab09548591fa07147f31f80693afbc6e1b84ce0b61760a2fa2e60888861d1",
        "13fffe93aaf44bd7d4d052a8fa4bd7992aee0b469b7d190d333b20ff5a6a7478",
    ),
    "conda": (
        "3960339e1a745aed21de5fbe50328a642d6f65157d43314e343fc28db786513f",
        "f4ea6e789d48fa09bc8f739eafee604984cf157c7d95d4d28f7dc3326d3d14c6",
    ),
}
"""For each subset, the sha256 of `plan --json` and of all fingerprints."""


@pytest.mark.parametrize("subset", GOLDEN)
def test_neither_the_document_nor_a_fingerprint_changes(
    subset: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal fingerprints name equal results in every store, so a change here rebuilds everything.

    Raise the revision of the stage that you meant to change, then write the new digests here.
    """
    monkeypatch.setattr(settings, "__version__", "0")
    plan = plan_of(EXAMPLE.read_text(encoding="utf-8"), PlanSelection(subset))
    document = sha256(encode(plan_report(plan))).hexdigest()
    fingerprints = sha256("\n".join(job.fingerprint for job in plan.jobs).encode()).hexdigest()
    assert (document, fingerprints) == GOLDEN[subset]
