"""A channel of extensions for several torches: what users type leads to the wheel for theirs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.helpers import Command
from tests.support.installers import FreshEnvironment
from tests.support.made_wheel import make_wheel
from tests.support.offered import served

pytestmark = pytest.mark.integration

TOOLS = ("pip", "uv")
RELEASES, COMPUTES = ("2.13", "2.14"), ("cpu", "cu130")


class Site(NamedTuple):
    """Two channels on a web server: extensions, and the torches that they require."""

    own: str
    torches: str


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two extensions and a torch, each for two releases and two computes, and a pure wheel."""
    folder = tmp_path_factory.mktemp("wheels")
    for release in RELEASES:
        for compute in COMPUTES:
            label = f"pt{release.replace('.', '')}{compute}"
            needs = [f"torch=={release}.*", "shared"]
            make_wheel(folder / "own", "myext", f"1.0+{label}", requires=needs)
            make_wheel(folder / "own", "other", f"0.5+{label}", requires=needs)
            make_wheel(folder / "torches", "torch", f"{release}.0+{compute}")
    make_wheel(folder / "own", "shared")
    return folder


@pytest.fixture
def site(wheels: Path, torchyard: Command, tmp_path: Path) -> Iterator[Site]:
    with served(tmp_path / "web") as url:
        for name in ("torches", "own"):
            words = ("--external", "torch", "--upstream", f"{url}torches/{{compute}}/")
            done = torchyard("publish", wheels / name, "--to", tmp_path / "web" / name, *words)
            assert done.code == 0, done.err
        yield Site(f"{url}own", f"{url}torches")


def printed(torchyard: Command, site: Site, *words: str) -> dict[str, str]:
    """Return the commands that `which` prints."""
    told = torchyard("which", site.own, "myext", "--json", *words)
    assert told.code == 0, told.err
    commands: dict[str, str] = json.loads(told.out)["choice"]["commands"]
    return commands


@pytest.mark.parametrize("tool", TOOLS)
def test_a_torch_that_is_there_stays_and_gets_its_extension(
    site: Site, torchyard: Command, tmp_path: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = FreshEnvironment(tmp_path / "fresh")
    fresh.run(f"uv pip install --index-url {site.torches}/cu130/ torch==2.13.0")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "fresh/env"))
    command = printed(torchyard, site)[tool]
    assert fresh.run(command) == {
        "myext": "1.0+pt213cu130",
        "torch": "2.13.0+cu130",
        "shared": "1.0",
    }


@pytest.mark.parametrize("tool", TOOLS)
def test_who_has_no_torch_gets_one_with_the_extension(
    site: Site, torchyard: Command, tmp_path: Path, tool: str
) -> None:
    command = printed(torchyard, site, "--cpu", "--torch", "any")[tool]
    wanted = {"myext": "1.0+pt214cpu", "torch": "2.14.0+cpu", "shared": "1.0"}
    assert FreshEnvironment(tmp_path / "fresh").run(command) == wanted


BY_HAND = {
    "pip": "pip install myext other --index-url {own}/{index}/ --extra-index-url {torches}/cu130/",
    "find-links": "pip install myext other shared --no-index -f {own}/torch-2.13.0+cu130.html"
    " -f {torches}/cu130/torch/ -f {own}/simple/shared/",
    "uv": "uv pip install myext other --index {own}/{index}/ --default-index {torches}/cu130/",
}


@pytest.mark.parametrize("way", BY_HAND)
def test_the_index_of_a_torch_is_used_as_people_know_it(
    site: Site, tmp_path: Path, way: str
) -> None:
    """With a plain plus in the address, and without versions."""
    index = {"index": "torch-2.13+cu130", **site._asdict()}
    assert FreshEnvironment(tmp_path / "fresh").run(BY_HAND[way].format_map(index)) == {
        "myext": "1.0+pt213cu130",
        "other": "0.5+pt213cu130",
        "torch": "2.13.0+cu130",
        "shared": "1.0",
    }


def test_such_a_channel_passes_its_audit(site: Site, torchyard: Command) -> None:
    done = torchyard("channel", "check", site.own)
    assert done.code == 0, done.out


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS)
def test_the_real_torch_comes_from_the_default_index(
    torchyard: Command, tmp_path: Path, tool: str
) -> None:
    """It is installed if it is one without CUDA, which is 3 GB."""
    make_wheel(tmp_path / "dist", "myext", "1.0+pt213cpu", requires=["torch==2.13.*"])
    with served(tmp_path / "web") as url:
        place = tmp_path / "web/own"
        done = torchyard("publish", tmp_path / "dist", "--to", place, "--external", "torch")
        assert done.code == 0, done.err
        command = printed(torchyard, Site(f"{url}own", ""), "--cpu", "--torch", "any")[tool]
        fresh = FreshEnvironment(tmp_path / "fresh", own_settings=True)
        said = fresh.resolve(command)
        assert re.search(r"\bmyext(-|==)1\.0\+pt213cpu\b", said)
        assert re.search(r"\btorch(-|==)2\.13\.\d", said)
        if re.search(r"\btorch(-|==)2\.13\.\d\+cpu", said):
            found = fresh.run(command)
            assert found["myext"] == "1.0+pt213cpu"
            assert found["torch"].startswith("2.13.")
