"""What holds for every plan: laws, each a function, all of them tried with every plan drawn."""

import copy
from collections.abc import Mapping
from itertools import product
from random import Random
from typing import NamedTuple

import msgspec
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.property.strategies import TABLES, VALUES, Toml, configs, some
from tests.support.examples import examples
from tests.support.helpers import config_of, fingerprints, plan_of, toml_text

from torchyard.compute.registry import compute_platforms
from torchyard.errors import PlanError, SelectionError
from torchyard.model.config import Config
from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.plan.admission import admit
from torchyard.plan.expand import Expansion
from torchyard.plan.graph import Plan
from torchyard.plan.job_specs import make_task
from torchyard.plan.select import EVERYTHING, PlanSelection, subset_test

SHIPPED: list[tuple[str, Mapping[str, object]]] = [
    ("releases", TABLES.releases),
    ("pythons", TABLES.pythons),
    ("trees", TABLES.trees),
    *(("compute", platform.table().rows) for platform in compute_platforms()),
]
"""Tables that a file can have rows of."""


class Drawn(NamedTuple):
    """A configuration that was drawn, its plan, and what laws draw besides."""

    toml: Toml
    config: Config
    plan: Plan
    random: Random
    data: st.DataObject


def planned(toml: Toml, selection: PlanSelection = EVERYTHING) -> Plan | None:
    """Plan a configuration; None if it leaves nothing to plan."""
    try:
        return plan_of(toml_text(toml), selection)
    except (PlanError, SelectionError):
        return None


def everything_of(plan: Plan | None) -> dict[str, str]:
    assert plan is not None
    return {job.identifier: job.fingerprint for job in plan.jobs}


# ------------------------------------------------------- of a matrix, even if nothing is left of it


def excluded_and_planned_are_the_product(config: Config, expansion: Expansion) -> None:
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


def the_decision_on_a_cell_agrees_with_the_plan(config: Config, expansion: Expansion) -> None:
    kept = set(expansion.cells)
    for cell in everything():
        assert (admit(cell, config).absence is None) == (cell in kept)


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


# --------------------------------------------------------------------------------------- of a plan


def every_fingerprint_is_the_digest_of_its_payload(drawn: Drawn) -> None:
    for job in drawn.plan.jobs:
        assert make_task(drawn.plan, job).is_true


def inputs_precede_their_jobs(drawn: Drawn) -> None:
    for job in drawn.plan.jobs:
        assert all(number < job.number for number in job.inputs)


def jobs_are_unique(drawn: Drawn) -> None:
    identifiers = [job.identifier for job in drawn.plan.jobs]
    assert len(set(identifiers)) == len(identifiers)
    assert len({job.fingerprint for job in drawn.plan.jobs}) == len(identifiers)


def the_order_of_values_does_not_count(drawn: Drawn) -> None:
    shuffled = copy.deepcopy(drawn.toml)
    for dimension in VALUES:
        drawn.random.shuffle(shuffled["matrix"].get(dimension, []))
    for couple in shuffled["matrix"].get("couple", ()):
        rows = list(zip(*couple.values(), strict=True))
        drawn.random.shuffle(rows)
        couple.update(zip(couple, map(list, zip(*rows, strict=True)), strict=True))
    assert everything_of(planned(shuffled)) == everything_of(drawn.plan)


def rules_that_commute_do_commute(drawn: Drawn) -> None:
    shuffled = copy.deepcopy(drawn.toml)
    for rules in (shuffled["matrix"]["exclude"], shuffled["matrix"]["include"]):
        drawn.random.shuffle(rules)
    drawn.random.shuffle(shuffled["override"])
    assert everything_of(planned(shuffled)) == everything_of(drawn.plan)


def a_new_value_changes_no_other_cell(drawn: Drawn) -> None:
    matrix = drawn.toml["matrix"]
    missing = [
        (dimension, value)
        for dimension, values in VALUES.items()
        for value in values
        if dimension in matrix and value not in matrix[dimension]
    ]
    if not missing:
        return
    dimension, value = drawn.data.draw(st.sampled_from(missing))
    larger = copy.deepcopy(drawn.toml)
    larger["matrix"][dimension].append(value)
    if after := planned(larger):
        assert fingerprints(drawn.plan).items() <= fingerprints(after).items()


def an_inclusion_changes_no_other_cell(drawn: Drawn) -> None:
    cell = {key: drawn.data.draw(some(values)) for key, values in VALUES.items()}
    larger = copy.deepcopy(drawn.toml)
    larger["matrix"]["include"].append({**cell, "reason": "one more"})
    if after := planned(larger):
        assert fingerprints(drawn.plan).items() <= fingerprints(after).items()


def a_selection_is_a_part_with_the_same_fingerprints(drawn: Drawn) -> None:
    words = drawn.data.draw(some(["*/cpu-*/*", "cp31*", "wheel", "*linux*", "libtorch"]))
    chosen = PlanSelection(select=tuple(words[:1]), skip=tuple(words[1:]))
    if part := planned(drawn.toml, chosen):
        assert fingerprints(part).items() <= fingerprints(drawn.plan).items()


def select_and_skip_split_the_plan(drawn: Drawn) -> None:
    chosen = planned(drawn.toml, PlanSelection(select=("wheel",)))
    others = planned(drawn.toml, PlanSelection(skip=("wheel",)))
    if chosen and others:
        assert {*chosen.cells(), *others.cells()} == set(drawn.plan.cells())
        assert not set(chosen.cells()) & set(others.cells())


def a_subset_means_the_same_to_plan_and_explain(drawn: Drawn) -> None:
    subset = drawn.config.subsets["some"]
    if part := planned(drawn.toml, PlanSelection("some")):
        inside = set(filter(subset_test(drawn.plan.expansion, subset), drawn.plan.cells()))
        assert set(part.cells()) == inside


def own_rows_that_are_as_shipped_change_nothing(drawn: Drawn) -> None:
    """The file may repeat any row, or any part of one."""
    table, shipped = drawn.data.draw(st.sampled_from(SHIPPED))
    name = drawn.data.draw(st.sampled_from(sorted(shipped)))
    row = msgspec.to_builtins(shipped[name])
    kept = drawn.data.draw(st.sets(st.sampled_from(sorted(row))) if row else st.just(set()))
    repeated = {**drawn.toml, "tables": {table: {name: {key: row[key] for key in kept}}}}
    assert config_of(toml_text(repeated)).tables == drawn.config.tables
    after = planned(repeated)
    assert after is not None
    assert after.fingerprints == drawn.plan.fingerprints


MATRIX_LAWS = (
    excluded_and_planned_are_the_product,
    the_decision_on_a_cell_agrees_with_the_plan,
)
PLAN_LAWS = (
    every_fingerprint_is_the_digest_of_its_payload,
    inputs_precede_their_jobs,
    jobs_are_unique,
    the_order_of_values_does_not_count,
    rules_that_commute_do_commute,
    a_new_value_changes_no_other_cell,
    an_inclusion_changes_no_other_cell,
    a_selection_is_a_part_with_the_same_fingerprints,
    select_and_skip_split_the_plan,
    a_subset_means_the_same_to_plan_and_explain,
    own_rows_that_are_as_shipped_change_nothing,
)


@settings(
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(configs(), st.randoms(use_true_random=False), st.data())
def test_every_plan_obeys_all_laws(toml: Toml, random: Random, data: st.DataObject) -> None:
    config = config_of(toml_text(toml))
    expansion = Expansion(config)
    for matrix_law in MATRIX_LAWS:
        matrix_law(config, expansion)
    plan = planned(toml)
    assume(plan is not None)
    assert plan is not None
    for plan_law in PLAN_LAWS:
        plan_law(Drawn(toml, config, plan, random, data))
