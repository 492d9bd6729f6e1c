"""What holds for every plan."""

import copy
from itertools import product
from random import Random

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.helpers import config_of, fingerprints, plan_of, toml_text
from tests.property.strategies import TABLES, VALUES, Toml, configs, some

from torchyard.errors import PlanError, SelectionError
from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.plan.admission import decide
from torchyard.plan.expand import Expansion
from torchyard.plan.graph import Plan
from torchyard.plan.order import task_of
from torchyard.plan.select import EVERYTHING, Selection, in_subset

law = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def planned(toml: Toml, selection: Selection = EVERYTHING) -> Plan:
    """Plan a configuration; one that leaves nothing to plan proves nothing."""
    try:
        return plan_of(toml_text(toml), selection)
    except (PlanError, SelectionError):
        assume(False)
        raise


def everything_of(plan: Plan) -> dict[str, str]:
    return {job.identifier: job.fingerprint for job in plan.jobs}


@law
@given(configs())
def test_every_fingerprint_is_the_digest_of_its_payload(toml: Toml) -> None:
    plan = planned(toml)
    for job in plan.jobs:
        assert task_of(plan, job).is_true


@law
@given(configs())
def test_inputs_precede_their_jobs(toml: Toml) -> None:
    for job in planned(toml).jobs:
        assert all(number < job.number for number in job.inputs)


@law
@given(configs())
def test_jobs_are_unique(toml: Toml) -> None:
    plan = planned(toml)
    identifiers = [job.identifier for job in plan.jobs]
    assert len(set(identifiers)) == len(identifiers)
    assert len({job.fingerprint for job in plan.jobs}) == len(identifiers)


@law
@given(configs(), st.randoms(use_true_random=False))
def test_the_order_of_values_does_not_count(toml: Toml, random: Random) -> None:
    before = everything_of(planned(toml))
    shuffled = copy.deepcopy(toml)
    for dimension in VALUES:
        random.shuffle(shuffled["matrix"].get(dimension, []))
    for couple in shuffled["matrix"].get("couple", ()):
        rows = list(zip(*couple.values(), strict=True))
        random.shuffle(rows)
        couple.update(zip(couple, map(list, zip(*rows, strict=True)), strict=True))
    assert everything_of(planned(shuffled)) == before


@law
@given(configs(), st.randoms(use_true_random=False))
def test_rules_that_commute_do_commute(toml: Toml, random: Random) -> None:
    before = everything_of(planned(toml))
    shuffled = copy.deepcopy(toml)
    for rules in (shuffled["matrix"]["exclude"], shuffled["matrix"]["include"]):
        random.shuffle(rules)
    random.shuffle(shuffled["override"])
    assert everything_of(planned(shuffled)) == before


@law
@given(configs(), st.sampled_from(list(VALUES)), st.data())
def test_a_new_value_changes_no_other_cell(toml: Toml, dimension: str, data: st.DataObject) -> None:
    assume(dimension in toml["matrix"])
    before = fingerprints(planned(toml))
    larger = copy.deepcopy(toml)
    value = data.draw(st.sampled_from(VALUES[dimension]))
    assume(value not in larger["matrix"][dimension])
    larger["matrix"][dimension].append(value)
    after = fingerprints(planned(larger))
    assert before.items() <= after.items()


@law
@given(configs(), st.fixed_dictionaries({key: some(values) for key, values in VALUES.items()}))
def test_an_inclusion_changes_no_other_cell(toml: Toml, cell: Toml) -> None:
    before = fingerprints(planned(toml))
    larger = copy.deepcopy(toml)
    larger["matrix"]["include"].append({**cell, "reason": "one more"})
    assert before.items() <= fingerprints(planned(larger)).items()


@law
@given(configs())
def test_excluded_and_planned_are_the_product(toml: Toml) -> None:
    config = config_of(toml_text(toml))
    expansion = Expansion(config, TABLES)
    kept = set(expansion.cells)
    left_out = {absent.cell for absent in expansion.absent}
    assert not kept & left_out
    wanted = set()
    for cell in everything():
        free = all(
            v in own or v == ANY_PYTHON for v, own in zip(cell, config.matrix.values, strict=True)
        )
        coupled = all(couple.admits(cell) for couple in config.matrix.couples)
        if (free and coupled) or any(rule.matches(cell) for rule in config.matrix.include):
            wanted.add(cell)
    assert kept | left_out == wanted


@law
@given(configs())
def test_the_decision_on_a_cell_agrees_with_the_plan(toml: Toml) -> None:
    config = config_of(toml_text(toml))
    kept = set(Expansion(config, TABLES).cells)
    for cell in everything():
        assert (decide(cell, config, TABLES).absence is None) == (cell in kept)


def everything() -> list[Cell]:
    """Every cell that any configuration of these tests could have."""
    platforms, computes, blas, pythons, packages = VALUES.values()
    kinds = TABLES.packages
    pairs = dict.fromkeys(
        (python if kinds[package].per_python else ANY_PYTHON, package)
        for python, package in product(pythons, packages)
    )
    heads = product(platforms, computes, blas)
    return [Cell(*head, *pair) for head, pair in product(heads, pairs)]


@law
@given(configs(), some(["*/cpu-*/*", "cp31*", "wheel", "*linux*", "libtorch"]))
def test_a_selection_is_a_part_with_the_same_fingerprints(toml: Toml, words: list[str]) -> None:
    whole = planned(toml)
    part = planned(toml, Selection(select=tuple(words[:1]), skip=tuple(words[1:])))
    assert fingerprints(part).items() <= fingerprints(whole).items()


@law
@given(configs())
def test_select_and_skip_split_the_plan(toml: Toml) -> None:
    whole = set(planned(toml).cells())
    chosen = set(planned(toml, Selection(select=("wheel",))).cells())
    others = set(planned(toml, Selection(skip=("wheel",))).cells())
    assert chosen | others == whole
    assert not chosen & others


@law
@given(configs())
def test_a_subset_means_the_same_to_plan_and_explain(toml: Toml) -> None:
    config = config_of(toml_text(toml))
    whole = set(planned(toml).cells())
    inside = {cell for cell in whole if in_subset(cell, config, config.subsets["some"])}
    assert set(planned(toml, Selection("some")).cells()) == inside
