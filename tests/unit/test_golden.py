"""The example's plan, byte for byte: its document, and the fingerprint of every job."""

from hashlib import sha256

import pytest
from tests.helpers import EXAMPLE, plan_of

from torchyard.plan import settings
from torchyard.plan.select import PlanSelection
from torchyard.reports.plan.document import plan_json

GOLDEN = {
    None: (
        "94986a8c41a2c7a0b7bd4c4d6a9668ff2b79d9fd98d53817811a92baae332ce6",
        "a0fb2ca9aba83407401c4560330b5ee4fbf8ae891c1e746f67a2e6b9aba70b2d",
    ),
    "pr": (
        "66c247b680d6d46a3cd7f0fd5ab7d9a6f40eb2e3481f5b899ac732ef35438096",
        "221e6c2c29e627fea30776f02e697abff014d1e96df1b1ddfe5580ba8a9ebe16",
    ),
    "nightly": (
        "02c1e95a1a17d986b9da98cadcf0aae480f08bce80f5ff504beea9b35b549394",
        "39e8b7e83ffc32fef7a83c20b40232a139dffc148aab2403e5f7a2ac7bccbec3",
    ),
    "release": (
        "f6bc67b80821e79242514e41ca395a94cda25030a056894466f4b8012ca7e394",
        "6322db6960e5c069b92d9cb9bdbbe98a044fa16ce1ef283b07550995c6260fe2",
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
    document = sha256(b"".join(plan_json(plan))).hexdigest()
    fingerprints = sha256("\n".join(job.fingerprint for job in plan.jobs).encode()).hexdigest()
    assert (document, fingerprints) == GOLDEN[subset]
