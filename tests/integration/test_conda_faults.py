"""Faults of conda packages are found or refused, and packages of rattler-build have none."""

import json
import shutil
from pathlib import Path

import pytest
from tests.mutations.conda import FAULTS
from tests.mutations.feedstock import RECIPES, make_feedstocks
from tests.mutations.mutation import Mutation, conda_edited
from tests.mutations.test_mutations import findings
from tests.mutations.texts import with_depends, with_index
from tests.support.helpers import Command

from torchyard.errors import PublishError
from torchyard.smoke.conda import index_channel

pytestmark = pytest.mark.integration

_PACKAGES = 20


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_feedstocks(tmp_path_factory.mktemp("feedstocks"))


def test_nothing_is_found_in_packages_of_rattler_build(made: dict[str, Path]) -> None:
    assert len(made) == len(RECIPES) == _PACKAGES
    for package in made.values():
        assert findings(package) == []
    assert findings(*made.values()) == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_found(made: dict[str, Path], fault: Mutation, tmp_path: Path) -> None:
    found = findings(fault.make(made[fault.good], tmp_path))
    assert {finding.rule for finding in found} == {fault.rule}, found


REFUSED = {
    "other bytes": ("demo-data", conda_edited({"share/demo/data.txt": b"other data"})),
    "which the channel does not have": ("demo-data", with_depends({"none-such": ">=1"})),
    "has characters that": ("libdemo", with_index("name", "LibDemo", "libdemo", "LibDemo")),
}
"""Why packages are refused, and how each is made of a published one."""


@pytest.mark.parametrize("reason", REFUSED)
def test_a_fault_is_refused(
    made: dict[str, Path], reason: str, tmp_path: Path, torchyard: Command
) -> None:
    name, make = REFUSED[reason]
    channel = tmp_path / "channel"
    done = torchyard("publish", made[name], "--to", channel)
    assert done.code == 0, done.err
    refused = torchyard("publish", make(made[name], tmp_path), "--to", channel)
    assert refused.code == PublishError.exit_code
    assert reason in refused.err


def test_an_index_with_other_requirements_is_told(
    made: dict[str, Path], tmp_path: Path, torchyard: Command
) -> None:
    (tmp_path / "noarch").mkdir()
    (tmp_path / "linux-64").mkdir()
    shutil.copy(made["demo-data"], tmp_path / "noarch")
    index_channel(tmp_path)
    for page in tmp_path.glob("noarch/repodata*"):
        if page.name != "repodata.json":
            page.unlink()
        else:
            page.write_text(page.read_text().replace('"depends":[]', '"depends":["__glibc"]'))
    done = torchyard("channel", "check", tmp_path, "--deep", "--json")
    assert [rule["rule"] for rule in json.loads(done.out)["rules"]] == ["index-record"]
