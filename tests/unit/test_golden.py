"""The example's plan, byte for byte: its document, and the fingerprint of every job."""

from hashlib import sha256

import pytest
from tests.support.helpers import EXAMPLE, plan_of

from torchyard.features.plan.use_case import plan_report
from torchyard.plan import settings
from torchyard.plan.select import PlanSelection
from torchyard.terminal.json_output import encode

GOLDEN = {
    None: (
        "3c31430c137fdc27791d1030889165011388aed8c97fe0294cc9d0c5188aea91",
        "565a00fe563e46de29cc95546b482bac7c645f91e7d6064cecc8e4cb3de6a3e5",
    ),
    "pr": (
        "3cbad302dda853d1d26e8ae3f5f488573b1868a233acf7ecc85502d24490374b",
        "4318352febd73a30f5cb395533001f28f5b60d640628aa7bd22afcd3e4618238",
    ),
    "nightly": (
        "f5d3ddabbf0bebee4682e656223cc750dc4769b3c23da913a71698fb5f74e8d5",
        "49075692dc25153560b551dc1b6de86f6060233f279297362159cdc377a749af",
    ),
    "release": (
        "f31c668223c0f6dab1df44029e4698aa6f03b06bb4a671a7b669ef756862a55f",
        "2ce52019b554addbe526199268a7652b0126c8349cc9a803690fa5fe6754c8eb",
    ),
    "conda": (
        "cd0d306e8c7a9ae9f5e6d381d7905312722352f139d2661579f37a2a74633c41",
        "5a89faa13bd82c8482a52ff8e8116c2f4d24b9bbb7c4d8807a1a9cfda3813e57",
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
