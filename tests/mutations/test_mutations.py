"""Every way to break a package is told by the rule that is meant for it, and good ones pass."""

from datetime import date
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.mutations.archives import ARCHIVES
from tests.mutations.binaries import BINARIES
from tests.mutations.conda import FAULTS
from tests.mutations.good import job_for, make_goods
from tests.mutations.mutation import Mutation
from tests.mutations.specs import OWN, SPECS, STABLE_JOB
from tests.mutations.texts import TEXTS
from tests.mutations.uploads import UPLOADS

from torchyard.checks.check import apply_rules
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.registry import PACKAGE_RULES
from torchyard.checks.rule import Finding
from torchyard.model.job_spec import JobSpec
from torchyard.package.read import read_package

pytestmark = pytest.mark.integration

TODAY = date(2026, 11, 15)
POLICY = CheckPolicy(budget="1 MB")
MUTATIONS: list[Mutation] = [*ARCHIVES, *TEXTS, *BINARIES, *SPECS, *UPLOADS]


@pytest.fixture(scope="module")
def goods(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_goods(tmp_path_factory.mktemp("good"))


def findings(*packages: Path, spec: JobSpec | None = None, index: str = "") -> list[Finding]:
    """All that is found in packages which are checked together."""
    policy = replace(POLICY, index=index)
    checked = apply_rules([read_package(path) for path in packages], policy, TODAY, spec)
    return [finding for each in checked for finding in each.findings]


def test_good_packages_have_no_findings(goods: dict[str, Path]) -> None:
    for package in goods.values():
        assert findings(package) == []
    assert findings(*goods.values()) == []
    assert findings(goods["stable"], index="pypi") == []


@pytest.mark.parametrize("good", OWN)
def test_good_packages_are_those_of_their_jobs(goods: dict[str, Path], good: str) -> None:
    assert findings(goods[good], spec=job_for(OWN[good])) == []


def test_a_good_extension_is_of_its_abi_class(goods: dict[str, Path]) -> None:
    assert findings(goods["extension"], spec=STABLE_JOB) == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_broken_packages_are_told(
    goods: dict[str, Path], mutation: Mutation, tmp_path: Path
) -> None:
    broken = mutation.make(goods[mutation.good], tmp_path)
    beside = (goods[name] for name in mutation.beside)
    found = findings(broken, *beside, spec=mutation.spec, index=mutation.upload)
    assert {finding.rule for finding in found} == {mutation.rule, *mutation.also}, found


def test_every_rule_has_a_mutation() -> None:
    assert {mutation.rule for mutation in (*MUTATIONS, *FAULTS)} == set(PACKAGE_RULES)
