"""The example's plan, byte for byte: its document, and the fingerprint of every job."""

from hashlib import sha256

import pytest
from tests.helpers import EXAMPLE, plan_of

from torchyard.plan import settings
from torchyard.plan.select import PlanSelection
from torchyard.reports.plan.document import plan_json

GOLDEN = {
    None: (
        "fb9897bce371084bd600ed4ff277c058f8df377fcac861d661910de7fb062f4f",
        "6cfc1749138517b40c97408e53f094cf516d9e09743b50da54213c41de1846a5",
    ),
    "pr": (
        "a791a47b4e8be7a8802190dcd45f85c2baea50c5ba0b5c7e560bdedd2943e4d2",
        "d736a3826f5e56a49ccb769780d52cc3d7276b10cb5ab58bc293effd30380b73",
    ),
    "nightly": (
        "9b7b41a3a7f4c0cfd91ea7f3419e3799b3c79d906b1d1dec6b882c3fc81f5ef4",
        "9384d137e59337e99e54c32b615edd5413c516ae1e602f24607f2f91e512ec5b",
    ),
    "release": (
        "4ff01de549dc1f3da4af067db3b71a20f52a380738968ff2ffb502844ce393b0",
        "283c43d34d2b9fe31db7e5c255701be4f315eae9ae4ca59423d5372cb687b364",
    ),
    "conda": (
        "61437fdbbb5f2c6cdd42ab59209880019bd357502a94e5187002d4face88a3f1",
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
