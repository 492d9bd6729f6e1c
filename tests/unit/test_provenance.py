"""Provenances of wheels (PEP 740): what is published is genuine."""

import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.attested import (
    PROJECT,
    WHEEL,
    attested_wheel,
    forged_provenance,
    genuine_provenance,
)
from tests.support.channels import LATER, NOW

from torchyard.errors import HostError, PublishError
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.layout import key_of, parse_part
from torchyard.publish.ops.promote import gather_packages
from torchyard.publish.provenance import LARGEST_PROVENANCE, check_provenance
from torchyard.publish.publish import publish
from torchyard.publish.select import parse_selection
from torchyard.publish.staged import read_staged

Part = dict[str, str]
Change = Callable[[Part, Part], None]
"""Changes the verification material and the envelope of an attestation."""


@pytest.fixture
def digest(tmp_path: Path) -> str:
    return sha256(attested_wheel(tmp_path).read_bytes()).hexdigest()


def _published(folder: Path, channel: Channel) -> None:
    publish(channel, channel.head(), read_staged([folder], "compute", NOW), LATER)


def test_a_genuine_provenance_is_published_beside_its_wheel(tmp_path: Path) -> None:
    channel = Channel.at(str(tmp_path / "channel"), make=True)
    sidecar = Path(f"{attested_wheel(tmp_path / 'dist')}.provenance")
    sidecar.unlink()
    _published(tmp_path / "dist", channel)
    attested_wheel(tmp_path / "dist")
    _published(tmp_path / "dist", channel)  # it may come later
    (entry,) = channel.state(channel.head(), f"simple/{PROJECT}").entries
    assert entry.provenance
    key = f"{key_of(parse_part(f'simple/{PROJECT}'), entry)}.provenance"
    assert channel.objects.read(key) == sidecar.read_bytes()


def test_a_forged_provenance_is_refused(tmp_path: Path) -> None:
    wheel = attested_wheel(tmp_path)
    Path(f"{wheel}.provenance").write_bytes(forged_provenance())
    with pytest.raises(PublishError, match=f"provenance of `{wheel.name}` can't be verified"):
        read_staged([tmp_path], "compute", NOW)


def test_a_provenance_of_another_file_is_refused(tmp_path: Path) -> None:
    wheel = attested_wheel(tmp_path)
    with wheel.open("ab") as file:
        file.write(b"\0")
    digest = sha256(wheel.read_bytes()).hexdigest()
    with pytest.raises(PublishError, match="subject does not match distribution digest"):
        check_provenance(WHEEL, genuine_provenance(), digest)


def test_a_provenance_without_an_end_is_not_read(tmp_path: Path) -> None:
    with Path(f"{attested_wheel(tmp_path)}.provenance").open("ab") as file:
        file.truncate(20 << 30)  # sparse: it takes no space
    with pytest.raises(PublishError, match=f"has more than {LARGEST_PROVENANCE:,} bytes"):
        read_staged([tmp_path], "compute", NOW)


def _sign_aaaa(_material: Part, envelope: Part) -> None:
    envelope["signature"] = "AAAA"


def _state_more(_material: Part, envelope: Part) -> None:
    envelope["statement"] = b64encode(b64decode(envelope["statement"]) + b" ").decode()


def _drop_certificate(material: Part, _envelope: Part) -> None:
    material["certificate"] = ""


def _change_certificate(material: Part, _envelope: Part) -> None:
    data = bytearray(b64decode(material["certificate"]))
    data[len(data) // 2] ^= 1
    material["certificate"] = b64encode(data).decode()


@pytest.mark.parametrize(
    "change", [_sign_aaaa, _state_more, _drop_certificate, _change_certificate]
)
def test_a_changed_attestation_is_refused(change: Change, digest: str) -> None:
    document = json.loads(genuine_provenance())
    attestation = document["attestation_bundles"][0]["attestations"][0]
    change(attestation["verification_material"], attestation["envelope"])
    with pytest.raises(PublishError, match=r"can't be verified|is none \(PEP 740\)"):
        check_provenance(WHEEL, json.dumps(document).encode(), digest)


def test_one_forged_attestation_spoils_the_others(digest: str) -> None:
    document = json.loads(genuine_provenance())
    document["attestation_bundles"] += json.loads(forged_provenance())["attestation_bundles"]
    with pytest.raises(PublishError, match="can't be verified"):
        check_provenance(WHEEL, json.dumps(document).encode(), digest)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rubbish", "is none"),
        ("{}", "is none"),
        ("[" * 100_000, "is none"),
        ('{"version": 1, "attestation_bundles": []}', "has no attestation"),
    ],
)
def test_what_attests_nothing_is_refused(text: str, why: str) -> None:
    with pytest.raises(PublishError, match=why):
        check_provenance(WHEEL, text.encode(), "0" * 64)


def test_nothing_is_taken_for_verified_without_the_library(
    digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "pypi_attestations", raising=False)
    with pytest.raises(HostError, match="pypi-attestations is not installed"):
        check_provenance(WHEEL, genuine_provenance(), digest)


@pytest.mark.parametrize("is_forged", [False, True])
def test_a_promotion_leaves_out_what_is_not_genuine(tmp_path: Path, *, is_forged: bool) -> None:
    attested_wheel(tmp_path / "dist")
    channel = Channel.at(str(tmp_path / "channel"), make=True)
    _published(tmp_path / "dist", channel)
    (stored,) = (tmp_path / "channel").rglob("*.provenance")
    if is_forged:
        stored.write_bytes(forged_provenance())
    ((_, package, note),) = gather_packages(channel, parse_selection([PROJECT], (), ()), NOW)
    assert package.entry.provenance is not is_forged
    assert package.provenance == (b"" if is_forged else genuine_provenance())
    assert ("can't be verified" in note and "not promoted" in note) is is_forged
