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
        "42e1c8eab7965274eebc3101e6fee722979174880f5a97c7725c51b632935c52",
        "3420e35e32b767eed93552dde7998a9135e5f1142b177b53e1174b748d08bf3a",
    ),
    "pr": (
        "f8f423fa7e2c2369bc7d4eecc6026cc0c3980e80770367aabcb761649d15d23f",
        "221e6c2c29e627fea30776f02e697abff014d1e96df1b1ddfe5580ba8a9ebe16",
    ),
    "nightly": (
        "523b5e657726f1a66bcb4d9bd6c0707d0d7f114a81e2ae928bce9f46b8ca26c6",
        "b22cfe2689f6bd722d98d4328486a0f4c32806a49c338a72bd93bbc727bbd4df",
    ),
    "release": (
        "3778ae91417aa41d1e1cc6d01aa36ac8b4452bc0904f8db1cb3b6c2552d64aa0",
        "13fffe93aaf44bd7d4d052a8fa4bd7992aee0b469b7d190d333b20ff5a6a7478",
    ),
    "conda": (
        "5ad11dc062b92c88718587a8de530e64ddb46aafb3bac3ef2cc248d14e4b267c",
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
