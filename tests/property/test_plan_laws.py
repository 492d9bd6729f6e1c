"""What holds for every plan."""

import copy
from itertools import product
from random import Random

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.helpers import fingerprints, plan_of, toml_text, yard_of
from tests.property.strategies import TABLES, VALUES, Config, configs, some

from torchyard.errors import PlanError, SelectionError
from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.plan.expand import Expansion
from torchyard.plan.graph import Plan
from torchyard.plan.order import task_of
from torchyard.plan.select import EVERYTHING, Selection, in_subset
from torchyard.plan.verdict import verdict

law = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def planned(config: Config, selection: Selection = EVERYTHING) -> Plan:
    """Plan a configuration; one that leaves nothing to plan proves nothing."""
    try:
        return plan_of(toml_text(config), selection)
    except (PlanError, SelectionError):
        assume(False)
        raise


def everything_of(plan: Plan) -> dict[str, str]:
    return {job.identifier: job.fingerprint for job in plan.jobs()}


@law
@given(configs())
def test_every_fingerprint_is_the_digest_of_its_payload(config: Config) -> None:
    plan = planned(config)
    for job in plan.jobs():
        assert task_of(plan, job).is_true


@law
@given(configs())
def test_inputs_precede_their_jobs(config: Config) -> None:
    for job in planned(config).jobs():
        assert all(number < job.number for number in job.inputs)


@law
@given(configs())
def test_jobs_are_unique(config: Config) -> None:
    plan = planned(config)
    identifiers = [job.identifier for job in plan.jobs()]
    assert len(set(identifiers)) == len(identifiers)
    assert len({job.fingerprint for job in plan.jobs()}) == len(identifiers)


@law
@given(configs(), st.randoms(use_true_random=False))
def test_the_order_of_values_does_not_count(config: Config, random: Random) -> None:
    before = everything_of(planned(config))
    shuffled = copy.deepcopy(config)
    for dimension in VALUES:
        random.shuffle(shuffled["matrix"].get(dimension, []))
    for couple in shuffled["matrix"].get("couple", ()):
        rows = list(zip(*couple.values(), strict=True))
        random.shuffle(rows)
        couple.update(zip(couple, map(list, zip(*rows, strict=True)), strict=True))
    assert everything_of(planned(shuffled)) == before


@law
@given(configs(), st.randoms(use_true_random=False))
def test_rules_that_commute_do_commute(config: Config, random: Random) -> None:
    before = everything_of(planned(config))
    shuffled = copy.deepcopy(config)
    for rules in (shuffled["matrix"]["exclude"], shuffled["matrix"]["include"]):
        random.shuffle(rules)
    random.shuffle(shuffled["override"])
    assert everything_of(planned(shuffled)) == before


@law
@given(configs(), st.sampled_from(list(VALUES)), st.data())
def test_a_new_value_changes_no_other_cell(
    config: Config, dimension: str, data: st.DataObject
) -> None:
    assume(dimension in config["matrix"])
    before = fingerprints(planned(config))
    larger = copy.deepcopy(config)
    value = data.draw(st.sampled_from(VALUES[dimension]))
    assume(value not in larger["matrix"][dimension])
    larger["matrix"][dimension].append(value)
    after = fingerprints(planned(larger))
    assert before.items() <= after.items()


@law
@given(configs(), st.fixed_dictionaries({key: some(values) for key, values in VALUES.items()}))
def test_an_inclusion_changes_no_other_cell(config: Config, cell: Config) -> None:
    before = fingerprints(planned(config))
    larger = copy.deepcopy(config)
    larger["matrix"]["include"].append({**cell, "reason": "one more"})
    assert before.items() <= fingerprints(planned(larger)).items()


@law
@given(configs())
def test_excluded_and_planned_are_the_product(config: Config) -> None:
    yard = yard_of(toml_text(config))
    expansion = Expansion(yard, TABLES)
    kept = {Cell(*block.head, *pair) for block in expansion.blocks for pair in block.pairs}
    left_out = {
        Cell(*head, *pair)
        for _, head, mask in expansion.absent
        for pair in expansion.pairs_of(mask)
    }
    assert not kept & left_out
    wanted = set()
    for cell in everything():
        free = all(
            v in own or v == ANY_PYTHON for v, own in zip(cell, yard.matrix.values, strict=True)
        )
        coupled = all(couple.admits(cell) for couple in yard.matrix.couples)
        if (free and coupled) or any(rule.matches(cell) for rule in yard.matrix.include):
            wanted.add(cell)
    assert kept | left_out == wanted


@law
@given(configs())
def test_the_verdict_on_a_cell_agrees_with_the_plan(config: Config) -> None:
    yard = yard_of(toml_text(config))
    expansion = Expansion(yard, TABLES)
    kept = {Cell(*block.head, *pair) for block in expansion.blocks for pair in block.pairs}
    for cell in everything():
        assert (verdict(cell, yard, TABLES) is None) == (cell in kept)


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
def test_a_selection_is_a_part_with_the_same_fingerprints(config: Config, words: list[str]) -> None:
    whole = planned(config)
    part = planned(config, Selection(select=tuple(words[:1]), skip=tuple(words[1:])))
    assert fingerprints(part).items() <= fingerprints(whole).items()


@law
@given(configs())
def test_select_and_skip_split_the_plan(config: Config) -> None:
    whole = set(planned(config).cells())
    chosen = set(planned(config, Selection(select=("wheel",))).cells())
    others = set(planned(config, Selection(skip=("wheel",))).cells())
    assert chosen | others == whole
    assert not chosen & others


@law
@given(configs())
def test_a_subset_means_the_same_to_plan_and_explain(config: Config) -> None:
    yard = yard_of(toml_text(config))
    whole = set(planned(config).cells())
    inside = {cell for cell in whole if in_subset(cell, yard, yard.subsets["some"])}
    assert set(planned(config, Selection("some")).cells()) == inside
