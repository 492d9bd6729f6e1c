"""Mistakes in torchyard.toml are found, placed and answered."""

import pytest
from tests.helpers import SMALL, yard_of

from torchyard.errors import ConfigError, Diagnostic


def problems(text: str, *changes: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(ConfigError) as caught:
        yard_of(text, *changes)
    return caught.value.diagnostics


@pytest.mark.parametrize(
    ("written", "instead", "what", "at", "hint"),
    [
        ("python = [", "pyton = [", "unknown key `pyton` in [matrix]", "pyton", "`python`"),
        ('"cp312"]', '"cp321"]', "unknown python `cp321`", '"cp321"', "`cp312`"),
        (
            '"macos-arm64"',
            '"macos-arm"',
            "unknown platform `macos-arm`",
            '"macos-arm"',
            "macos-arm64",
        ),
        ('"cu*"', '"cuda*"', "`cuda*` matches no known compute", '"cuda*"', "known here"),
        (
            'stage = "core"',
            'stage = "cores"',
            "recipe `pytorch` has no stage `cores`",
            '"cores"',
            "core",
        ),
        ('name = "torch"', "name = 3", "`project.name`: expected str, got int", "3", None),
        ('version = "2.14.0"', 'version = "v2"', "`v2` is not a public version", '"v2"', "2.14.0"),
        ('memory = "16 GB"', 'memory = "16 GiB"', "`16 GiB` is not a number", '"16 GiB"', None),
        ('rev = "v2.14.0"\n', "", "[source] has `git` but no `rev`", '"https', "commit"),
        (
            'reason = "nobody wants it"\n',
            "",
            "[[matrix.exclude]] lacks the required key `reason`",
            "matrix.exclude",
            None,
        ),
        ('reason = "nobody wants it"', 'reason = " "', "this reason is empty", '" "', None),
        (
            'blas = ["mkl"',
            'torch = ["torch2.13"]\nblas = ["mkl"',
            "recipe `pytorch` has no dimension `torch`",
            "torch",
            "blas",
        ),
        (
            'python = ["cp311", ',
            'python = ["cp311", "cp311", ',
            "`cp311` is listed twice",
            '"cp311"',
            None,
        ),
        ('url = "file', 'subset = "prr"\nurl = "file', "there is no [subset.prr]", '"prr"', "`pr`"),
        (
            'url = "file',
            'promote_from = "x"\nurl = "file',
            "`x` is not another channel",
            '"x"',
            None,
        ),
        (
            'python = ["cp311", "cp312"]',
            "python = []",
            "[matrix] gives no values for `python`",
            "matrix",
            None,
        ),
    ],
)
def test_one_mistake(written: str, instead: str, what: str, at: str, hint: str | None) -> None:
    assert written in SMALL
    found = problems(SMALL.replace(written, instead, 1))
    first = next(item for item in found if what in item.what)
    assert first.span is not None
    start = first.span.column - 1
    assert first.span.text[start : start + first.span.length].startswith(at)
    if hint:
        assert hint in (first.hint or "")


def test_all_mistakes_are_told_at_once() -> None:
    text = SMALL.replace("python = [", "pyton = [").replace("stage =", "stag =")
    whats = [item.what for item in problems(text)]
    assert whats == [
        "unknown key `pyton` in [matrix]",
        "unknown key `stag` in [[override]]",
        "[[override]] lacks the required key `stage`",
    ]


def test_a_shared_job_takes_no_setting_of_one_sharer() -> None:
    text = SMALL.replace('stage = "core"\n', 'stage = "core"\npython = "cp312"\n')
    (found,) = problems(text)
    assert found.what == "a setting of stage `core` can't depend on `python`"


def test_a_rule_without_a_dimension_would_mean_everything() -> None:
    text = SMALL + '\n[[matrix.exclude]]\nreason = "all"\n'
    assert problems(text)[0].what == "this rule names no dimension, so it means every cell"


@pytest.mark.parametrize(
    ("couple", "what"),
    [
        ('platform = ["linux-x86_64"]', "a couple needs at least two dimensions"),
        (
            'compute = ["cpu", "cu130"]\npython = ["cp311"]',
            "the lists of this couple differ in length: compute has 2, python has 1",
        ),
        ('compute = ["cpu"]\nblas = ["mkl"]', "the values of `compute` are given twice"),
    ],
)
def test_couples(couple: str, what: str) -> None:
    assert what in [item.what for item in problems(f"{SMALL}\n[[matrix.couple]]\n{couple}\n")]


def test_broken_toml_is_shown_where_it_breaks() -> None:
    (found,) = problems(SMALL.replace('name = "torch"', 'name = "torch'))
    assert found.what.startswith("this is not TOML")
    assert found.span is not None
    assert found.span.line == 2


def test_a_mistake_on_the_command_line_is_placed_there() -> None:
    (found,) = problems(SMALL, "project.version=vv")
    assert found.span is not None
    assert (found.span.file, found.span.text) == ("--set", "project.version=vv")


def test_git_and_path_exclude_each_other() -> None:
    (found,) = problems(SMALL.replace("[source]\n", '[source]\npath = "."\n'))
    assert found.what == "[source] needs either `git` or `path`"
