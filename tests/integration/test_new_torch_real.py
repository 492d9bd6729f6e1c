"""Torch releases of a real index: their wheels say what the tables say of those that they have."""

import pytest
from packaging.version import Version

from torchyard.compute.registry import is_arch
from torchyard.config.tables import load_tables
from torchyard.host.network_settings import network_settings
from torchyard.index.simple.project_files import ListedWheel, list_wheels
from torchyard.workspace.indexed_release import IndexedRelease, find_indexed_release

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PLATFORM = "linux-x86_64"


@pytest.fixture(scope="module")
def wheels() -> list[ListedWheel]:
    network = network_settings()
    return list_wheels("torch", network.indexes, network.links)


def described(name: str, wheels: list[ListedWheel]) -> IndexedRelease:
    tag = load_tables().platforms[PLATFORM].wheel_tag
    return find_indexed_release(name, wheels, platforms={PLATFORM: tag}, computes=["cu130"])


@pytest.mark.parametrize("name", ["2.12", "2.13", "2.14"])
def test_wheels_agree_with_the_tables(name: str, wheels: list[ListedWheel]) -> None:
    found, known = described(name, wheels).row, load_tables().releases[name]
    for compute, libraries in found.libraries.items():
        assert libraries.items() >= known.libraries[compute].items()
        triton, ours = Version(found.triton[compute]), Version(known.triton[compute])
        assert triton.release[:2] == ours.release[:2]  # patch releases have others
    assert "cp312" in found.pythons


def test_the_newest_release_is_described(wheels: list[ListedWheel]) -> None:
    finals = [one.version for one in wheels if not one.version.is_prerelease]
    newest = max(finals)
    found = described(f"{newest.major}.{newest.minor}", wheels)
    assert found.version == newest.public
    (compute,) = found.row.libraries
    archs = found.row.archs[compute][PLATFORM]
    assert archs
    assert all(map(is_arch, archs))
