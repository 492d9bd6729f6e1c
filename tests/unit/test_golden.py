"""The example's plan, byte for byte: its document, and the fingerprint of every job."""

from hashlib import sha256

import pytest
from tests.helpers import EXAMPLE, plan_of

from torchyard.plan import settings
from torchyard.plan.select import PlanSelection
from torchyard.reports.plan.document import plan_json

GOLDEN = {
    None: (
        "54aeb4d6f8d7ea6ee469181f736f21eda0064366d0f6c9c0e821f2f5cdea3180",
        "6cfc1749138517b40c97408e53f094cf516d9e09743b50da54213c41de1846a5",
    ),
    "pr": (
        "b5c9debd14a4e8b424ffac37162b411a68ab2e79c9aca554a32e85ad93f98118",
        "d736a3826f5e56a49ccb769780d52cc3d7276b10cb5ab58bc293effd30380b73",
    ),
    "nightly": (
        "f08af5aebd4a8817bdd430a166ccf7ecb9925101bb5ebaaccf5231e00682dfa8",
        "9384d137e59337e99e54c32b615edd5413c516ae1e602f24607f2f91e512ec5b",
    ),
    "release": (
        "9fa50fb0c098ea216f3f893d37fd0bb36a1c3455ee773e418956a296574aab34",
        "283c43d34d2b9fe31db7e5c255701be4f315eae9ae4ca59423d5372cb687b364",
    ),
    "conda": (
        "584ca24b3a683b666e0b4f3dd87eb2a6e715b29d30c8e384750c4404c7bab917",
        "e3621a4baafa7a0c47d869e84b1fefb2dcdd96db4e9b051503df1a1a9f803eb1",
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
