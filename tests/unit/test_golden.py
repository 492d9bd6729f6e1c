"""The example's plan, byte for byte: its document, and the fingerprint of every job."""

from hashlib import sha256

import pytest
from tests.helpers import EXAMPLE, plan_of

from torchyard.plan import settings
from torchyard.plan.select import PlanSelection
from torchyard.reports.plan.document import plan_json

GOLDEN = {
    None: (
        "669b40fe06fc44dbd6e8e17cb4876e3edc81df789a3cae77566d3d89cbfc2506",
        "a60ae50a2eec8113c524dd8a221a9f8fefd4f523e4380738a679714f31cad055",
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
        "9898af7bf3235529840aa3d8e6896c0a1ab95e0c003471f21b6f142cef194f27",
        "90cfec30f517aeeae88b1b3cdc5c2206c93cd002025fe2200c0904becd376b15",
    ),
    "conda": (
        "ab66f32d111ca95de1563d0bd779156da65999fee286ec7c03b724bf47e7df10",
        "671947abc76b8a277ef65367d2c72b8bfe1dc20747db500868c942a786549985",
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
