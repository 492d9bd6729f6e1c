"""Two plans compared."""

import pytest
from tests.support.helpers import SMALL, config_of

from torchyard.model.recipe import Stage
from torchyard.plan.build import make_plan
from torchyard.plan.diff import Cause, FingerprintDiff, PlanDiff, diff_plans
from torchyard.plan.select import PlanSelection


def diff(old: str, new: str, subset: str | None = None) -> PlanDiff:
    plans = [
        make_plan(config_of(text, name=name), PlanSelection(subset))
        for text, name in ((old, "old.toml"), (new, "new.toml"))
    ]
    return diff_plans(*plans)


def test_nothing_changes_by_itself() -> None:
    assert diff(SMALL, SMALL) == PlanDiff(
        appeared=(), vanished=(), rebuilt=(), retested=(), unchanged=8
    )


INCLUDE = """
[[matrix.include]]
platform = "linux-x86_64"
compute = "cu126"
blas = "mkl"
python = "cp312"
package = "wheel"
reason = "one customer"
"""


@pytest.mark.parametrize(
    ("new", "lines"),
    [
        (
            SMALL.replace('["cp311", "cp312"]', '["cp312"]').replace('python = "cp311"\n', ""),
            ["matrix.python lost `cp311` (old.toml:13)", "left out: nobody wants it (new.toml:16)"],
        ),
        (
            SMALL.replace('python = "cp311"\n', ""),
            ["left out: nobody wants it (new.toml:16)"],
        ),
        (
            SMALL.replace('["linux-x86_64", "macos-arm64"]', '["linux-x86_64"]'),
            ["matrix.platform lost `macos-arm64` (old.toml:10)"],
        ),
    ],
)
def test_what_vanishes_is_blamed_on_a_line(new: str, lines: list[str]) -> None:
    def causes(changes: PlanDiff) -> list[str]:
        found = (c for change in changes.vanished for c in change.causes)
        return sorted({f"{cause.what} ({cause.origin})" for cause in found}, reverse=True)

    assert causes(diff(SMALL, new)) == lines
    backwards = diff(new, SMALL)
    assert [c.cell for c in backwards.appeared] == [c.cell for c in diff(SMALL, new).vanished]


def test_what_appears_is_blamed_on_a_line() -> None:
    without = SMALL.split("[[matrix.exclude]]")[0] + "[subset.pr]" + SMALL.split("[subset.pr]")[1]
    (change,) = diff(SMALL, without).appeared
    (cause,) = change.causes
    assert cause == Cause("no longer left out: nobody wants it", "old.toml:16")
    (change,) = diff(SMALL, SMALL + INCLUDE).appeared
    (cause,) = change.causes
    assert cause == Cause("included: one customer", "new.toml:38")
    (change,) = diff(SMALL + INCLUDE, SMALL).vanished
    assert change.causes[0] == Cause("no longer included: one customer", "old.toml:38")


def test_a_subset_can_be_the_cause() -> None:
    new = SMALL.replace('python = "cp312"\npackage', 'python = "cp311"\npackage')
    found = diff(SMALL, new, "pr")
    assert {c.causes[0].what for c in found.vanished} == {"no longer selected: pr"}
    assert {c.causes[0].origin for c in found.appeared} == {"new.toml:21"}


@pytest.mark.parametrize(
    ("written", "instead", "rebuilt", "what", "origin"),
    [
        ('rev = "v2.14.0"', 'rev = "abc"', 8, "source rev: v2.14.0 → abc", "new.toml:7"),
        ('MAGMA = "0"', 'MAGMA = "1"', 2, "core env.USE_MAGMA: 0 → 1", "new.toml:28"),
        ('env = { USE_MAGMA = "0" }\n', "", 2, "core env.USE_MAGMA: 0 → unset", "old.toml:28"),
        ("16 GB", "32 GB", 0, "", ""),
    ],
)  # fmt: skip
def test_what_is_rebuilt_is_blamed_on_a_line(
    written: str, instead: str, rebuilt: int, what: str, origin: str
) -> None:
    assert written in SMALL
    new = SMALL.replace(written, instead)
    found = diff(SMALL, new).rebuilt
    assert len(found) == rebuilt
    for change in found:
        assert change.causes == (Cause(what, origin),)


def test_a_new_version_rebuilds_everything_under_its_new_name() -> None:
    found = diff(SMALL, SMALL.replace("2.14.0", "2.14.1"))
    assert len(found.rebuilt) == 8
    assert not found.vanished
    assert found.rebuilt[0].cell.startswith("torch-2.14.1/")
    assert [cause.what for cause in found.rebuilt[0].causes] == [
        "source rev: v2.14.0 → v2.14.1",
        "core version: 2.14.0 → 2.14.1",
    ]


def test_a_job_that_only_one_plan_has() -> None:
    old = make_plan(config_of(SMALL))
    new = make_plan(config_of(SMALL + INCLUDE))
    scope = ("linux-x86_64", "cu126", "mkl")
    (cause,) = FingerprintDiff(old, new).causes(Stage.CORE, scope)
    assert cause == Cause("included: one customer", "torchyard.toml:38")
    (cause,) = FingerprintDiff(new, old).causes(Stage.CORE, scope)
    assert cause == Cause("no longer included: one customer", "torchyard.toml:38")


def test_another_name_makes_other_packages() -> None:
    found = diff(SMALL, SMALL.replace('name = "torch"', 'name = "pytorch"'))
    assert len(found.vanished) == len(found.appeared) == 8
    assert found.vanished[0].causes == (Cause("the name is `torch`", "old.toml:2"),)


def test_only_the_tests_of_a_package_may_change() -> None:
    more = '\n[[override]]\nstage = "smoke"\npython = "cp312"\nenv = { X = "1" }\n'
    found = diff(SMALL, SMALL + more)
    assert not found.rebuilt
    assert len(found.retested) == 3
    assert found.retested[0].causes == (Cause("smoke env.X: unset → 1", "new.toml:41"),)


def test_a_removed_override_is_blamed_where_it_was() -> None:
    first = '\n[[override]]\nstage = "core"\nenv = { A = "1" }\n'
    second = '\n[[override]]\nstage = "core"\ncompute = "cu*"\nenv = { A = "2" }\narchs = ["9.0"]\n'
    found = diff(SMALL + first + second, SMALL + first)
    causes = {cause.what.split(":")[0]: cause.origin for cause in found.rebuilt[0].causes}
    assert causes == {"core archs": "old.toml:46", "core env.A": "old.toml:45"}


def test_other_libraries_are_blamed_on_the_release() -> None:
    new = SMALL.replace('version = "2.14.0"', 'version = "2.14.0"\nrelease = "2.13"')
    causes = {cause.origin for change in diff(SMALL, new).rebuilt for cause in change.causes}
    assert causes == {"new.toml:4"}


def test_a_dropped_python_is_not_blamed_on_an_inclusion() -> None:
    more = '\n[[matrix.include]]\ncompute = "rocm7.2"\nreason = "rocm too"\n'
    old = (SMALL + more).replace('python = "cp311"\n', 'python = "cp312"\n')
    new = old.replace('["cp311", "cp312"]', '["cp312"]')
    whats = {cause.what for change in diff(old, new).vanished for cause in change.causes}
    assert whats == {"matrix.python lost `cp311`"}


def test_another_recipe_is_named() -> None:
    text = SMALL.replace('blas = ["mkl", "accelerate"]', 'torch = ["torch2.14"]')
    text = text.replace('package = ["wheel", "libtorch"]', 'package = ["wheel"]')
    text = text.replace('version = "2.14.0"', 'version = "2.14.0"\nrecipe = "extension"')
    text = text.replace('stage = "core"', 'stage = "bindings"')
    plans = [make_plan(config_of(t)) for t in (SMALL, text)]
    whats = [cause.what for cause in FingerprintDiff(*plans).causes(Stage.SOURCE, ())]
    assert whats == ["recipe: pytorch → extension"]


def test_an_edited_inclusion_is_blamed_for_what_it_named() -> None:
    old = SMALL + INCLUDE.replace('python = "cp312"', 'python = ["cp311", "cp312"]')
    new = (SMALL + INCLUDE).replace('["cp311", "cp312"]', '["cp312"]')
    found = {
        change.cell.split("/")[2].partition("-")[0]: change.causes[0]
        for change in diff(old, new).vanished
    }
    assert found["cu126"] == Cause("no longer included: one customer", "old.toml:38")
    assert found["cpu"] == Cause("matrix.python lost `cp311`", "old.toml:13")


def test_an_edited_couple_is_blamed_on_its_row() -> None:
    lists = (
        'platform = ["linux-x86_64", "macos-arm64"]\nblas = ["mkl", "accelerate"]\n'.splitlines()
    )
    text = "\n".join(line for line in SMALL.splitlines() if line not in lists)
    three = '["linux-x86_64", "macos-x86_64", "macos-x86_64"]'
    couple = f'\n[[matrix.couple]]\nplatform = {three}\nblas = ["mkl", "BLAS", "accelerate"]\n'
    old, new = (text + couple.replace("BLAS", blas) for blas in ("mkl", "accelerate"))
    gone = {change.causes[0] for change in diff(old, new).vanished}
    assert gone == {Cause("a couple lost `macos-x86_64 with mkl`", "old.toml:37")}
    back = {change.causes[0] for change in diff(new, old).appeared}
    assert back == {Cause("a couple gained `macos-x86_64 with mkl`", "new.toml:37")}


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("", 'subset = "pr"\n', ("channel.nightly subset: everything → pr", "new.toml:37")),
        ('subset = "pr"\n', "", ("channel.nightly subset: pr → everything", "old.toml:37")),
    ],
)
def test_a_channel_that_receives_something_else(old: str, new: str, cause: tuple[str, str]) -> None:
    plans = []
    for name, more in (("old.toml", old), ("new.toml", new)):
        config = config_of(SMALL + more, name=name)
        plans.append(make_plan(config, PlanSelection(config.channels["nightly"].subset)))
    assert FingerprintDiff(*plans).causes(Stage.PUBLISH, ("nightly",)) == (Cause(*cause),)


def test_a_channel_that_is_promoted_now() -> None:
    more = '[channel.test]\nurl = "x"\n'
    promoted = SMALL + 'promote_from = "test"\n' + more
    plans = [make_plan(config_of(text)) for text in (SMALL + more, promoted)]
    (cause,) = FingerprintDiff(*plans).causes(Stage.PUBLISH, ("nightly",))
    assert cause == Cause("channel.nightly is promoted from test", "torchyard.toml:37")
    plans = [make_plan(config_of(text)) for text in (SMALL, SMALL + more)]
    (cause,) = FingerprintDiff(*plans).causes(Stage.PUBLISH, ("test",))
    assert cause == Cause("channel.test", "torchyard.toml:37")
