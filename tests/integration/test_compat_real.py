"""The load matrix of published wheels, read by parts from the index."""

import msgspec
import pytest
from tests.support.helpers import Command

from torchyard.features.compat.report import ComparedWheel, CompatReport

pytestmark = [pytest.mark.integration, pytest.mark.slow]

RANGE = "2.10..2.15"


def compared(torchyard: Command, name: str) -> ComparedWheel:
    done = torchyard("compat", name, "--torch", RANGE, "--json")
    (wheel,) = msgspec.json.decode(done.out, type=CompatReport).wheels
    assert done.code == (13 if wheel.refuted else 0)
    return wheel


def minors(versions: list[str]) -> list[str]:
    return sorted((version.rpartition(".")[0] for version in versions), key=lambda v: int(v[2:]))


@pytest.mark.parametrize(
    ("name", "declared", "loads"),
    [
        ("torchvision==0.29.2", ">=2.14.0", ["2.13", "2.14", "2.15"]),
        ("torchaudio==2.11.0", None, ["2.11", "2.12", "2.13", "2.14", "2.15"]),
        ("xformers==0.0.35", ">=2.10", ["2.10"]),
    ],
)
def test_published_wheels(
    torchyard: Command, name: str, declared: str | None, loads: list[str]
) -> None:
    wheel = compared(torchyard, name)
    assert wheel.requires_torch == declared
    assert minors(wheel.loads) == loads


def test_only_its_cuda_keeps_xformers_from_loading(torchyard: Command) -> None:
    wheel = compared(torchyard, "xformers==0.0.35")
    obstacles = [one for release in wheel.releases for one in release.obstacles]
    assert {one.kind for one in obstacles} == {"toolkit"}
    assert {name for one in obstacles for name in one.names} == {"libcudart.so.12"}
