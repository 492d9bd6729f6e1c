"""Every way to break a package is told by the rule that is meant for it, and good ones pass."""

from datetime import date
from pathlib import Path

import pytest
from tests.mutations.archives import ARCHIVES
from tests.mutations.binaries import BINARIES
from tests.mutations.good import make_goods
from tests.mutations.mutation import Mutation
from tests.mutations.texts import TEXTS

from torchyard.checks.check import apply_rules
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.registry import PACKAGE_RULES
from torchyard.checks.rule import Finding
from torchyard.package.read import read_package

pytestmark = pytest.mark.integration

TODAY = date(2026, 11, 15)
POLICY = CheckPolicy(budget="1 MB")
MUTATIONS: list[Mutation] = [*ARCHIVES, *TEXTS, *BINARIES]


@pytest.fixture(scope="module")
def goods(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_goods(tmp_path_factory.mktemp("good"))


def findings(*packages: Path) -> list[Finding]:
    """All that is found in packages which are checked together."""
    checked = apply_rules([read_package(path) for path in packages], POLICY, TODAY)
    return [finding for each in checked for finding in each.findings]


def test_good_packages_have_no_findings(goods: dict[str, Path]) -> None:
    for package in goods.values():
        assert findings(package) == []
    assert findings(*goods.values()) == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_broken_packages_are_told(
    goods: dict[str, Path], mutation: Mutation, tmp_path: Path
) -> None:
    broken = mutation.make(goods[mutation.good], tmp_path)
    found = findings(broken, *(goods[name] for name in mutation.beside))
    assert {finding.rule for finding in found} == {mutation.rule, *mutation.also}, found


def test_every_rule_has_a_mutation() -> None:
    assert {mutation.rule for mutation in MUTATIONS} == set(PACKAGE_RULES)
