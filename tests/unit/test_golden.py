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
        "1c14fc1e7d8e1db344a5ed4088f597f1bab3786e8a3bee8f68ffc98bd591876a",
        "d9832e2c00e2f5edd5ed6eff688fffff33858d20a7150800db738a15e6e6651a",
    ),
    "pr": (
        "25a8d2c8035b7c6c64cc7f318267704c6a95566db5c98865724d1c9813c10852",
        "3f97e3434485bc605aff3c4925586c6fea5b5198d7ddb2b3a2f64900bff10a78",
    ),
    "nightly": (
        "ba0135fca0f40c15d490c516336c878431ee84e2a4d62c3ef34937086145e8e4",
        "445f4fc919ac2d516da9fbd45f909abad0f235ce61d1889776a4e63c11092af9",
    ),
    "release": (
        "2104eab6e86c4058e8536bd9d2cf86ec04833ee1273bae3c34e9b05c1143ace5",
        "680d8fe61ca32399564bcfc6a17c7be812d6272930824dc124974182e0e6a34e",
    ),
    "conda": (
        "0956651f02a936f7640cbd694361f96df6ceb993359d04b87ca6ab057013cd45",
        "c32923d014862230b216d65798139e4e8fbb7985763e182cba5ac6efeee766a9",
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
