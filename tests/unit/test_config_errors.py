"""Mistakes in torchyard.toml are found, placed and answered."""

import pytest
from tests.support.helpers import SMALL, config_of

from torchyard.errors import ConfigError, Diagnostic

SOURCE = 'git = "https://example.org/pytorch"\nrev = "v2.14.0"\n'


def problems(text: str, *changes: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(ConfigError) as caught:
        config_of(text, *changes)
    return caught.value.diagnostics


def mistake(written: str, instead: str, what: str) -> Diagnostic:
    """What is said of a mistake in a file that is right but for it."""
    assert written in SMALL
    found = problems(SMALL.replace(written, instead, 1))
    return next(item for item in found if what in item.what)


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
        (
            "[matrix]",
            '[toolchain]\nrocm = "pypi"\n[matrix]',
            "unknown key `rocm` in [toolchain]",
            "rocm",
            "`root`",
        ),
        ('name = "torch"', "name = 3", "`project.name` must be a string, not a number", "3", None),
        ('version = "2.14.0"', 'version = "v2"', "`v2` is not a public version", '"v2"', "2.14.0"),
        ('memory = "16 GB"', 'memory = "16 GiB"', "`16 GiB` is not a number", '"16 GiB"', None),
        ('rev = "v2.14.0"\n', "", "[source] has `git` but no `rev`", '"https', "commit"),
        (
            SOURCE,
            'archive = "torch-2.14.0.tar.gz"\n',
            "[source] has `archive` but no `sha256`",
            '"torch-2',
            "sha256sum",
        ),
        (
            SOURCE,
            'archive = "a.zip"\nsha256 = "1f3a"\n',
            "`1f3a` is not a sha256",
            '"1f3a"',
            "64 hexadecimal",
        ),
        (
            SOURCE,
            f'archive = "https://me@example.org/a.zip"\nsha256 = "{"0" * 64}"\n',
            "is not the address of an archive",
            '"https://me',
            "without a user name",
        ),
        (
            SOURCE,
            f'{SOURCE}sha256 = "{"0" * 64}"\n',
            "`sha256` belongs to `archive`",
            "sha256",
            None,
        ),
        (
            SOURCE,
            f'archive = "a.zip"\nrev = "v1"\nsha256 = "{"0" * 64}"\n',
            "`rev` belongs to `git`; other sources are used unchanged",
            "rev",
            None,
        ),
        (
            SOURCE,
            f'{SOURCE}patches = ["a.patch"]\n[[steps.source]]\nrun = "true"\n',
            "[[steps.source]] replaces the step that applies patches",
            "[",
            "apply them in a step",
        ),
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
            'url = "file://',
            'url = "s3://me:hunter22@',
            "an address must not contain a name or password",
            '"s3://',
            "AWS_SECRET_ACCESS_KEY",
        ),
        (
            'git = "https://',
            'git = "https://me:hunter22@',
            "an address must not contain a name or password",
            '"https://',
            "netrc",
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
    first = mistake(written, instead, what)
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
    ]


def test_a_shared_job_takes_no_setting_of_one_sharer() -> None:
    text = SMALL.replace('stage = "core"\n', 'stage = "core"\npython = "cp312"\n')
    (found,) = problems(text)
    assert found.what == "a setting of stage `core` can't depend on `python`"


def test_a_rule_without_a_dimension_would_mean_everything() -> None:
    text = SMALL + '\n[[matrix.exclude]]\nreason = "all"\n'
    assert problems(text)[0].what == "this rule names no dimension, so it applies to every cell"


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
    assert found.what == "[source] needs one of `git`, `path`, `archive`, `sdist` and `debian`"


@pytest.mark.parametrize(
    ("written", "instead", "what", "hint"),
    [
        (
            'python = ["cp311", "cp312"]',
            'python = "cp311"',
            "must be a list of strings, not a string",
            '["cp311"]',
        ),
        (
            'python = ["cp311", "cp312"]',
            'python = ["cp311", 3, true]',
            "`matrix.python[2]` must be a string, not true or false",
            None,
        ),
        (
            'name = "torch"',
            'name = "torch"\nrecipe = "pytroch"',
            "`project.recipe` can't be `pytroch`",
            "`pytorch`",
        ),
        ("[matrix]", "[matirx]", "unknown key `matirx` in this file", "`matrix`"),
        (
            'python = "cp311"\n',
            "python = []\n",
            "an empty list matches nothing",
            "leave the key out",
        ),
        ('stage = "core"', 'stage = ["core", "biuld"]', "has no stage `biuld`", "core"),
        (
            'stage = "core"\ncompute',
            'stage = "publish"\ncompute',
            "stage `publish` can't depend on `compute`",
            "drop the key",
        ),
        (
            'stage = "core"',
            'stage = "smoke"\narchs = ["9.0"]',
            "only stage `core` has `archs`",
            None,
        ),
        (
            'rev = "v2.14.0"',
            'rev = "v2.14.0"\ncommit = "abc"',
            "`abc` is not a commit",
            "40 hexadecimal",
        ),
        ('rev = "v2.14.0"', 'rev = ""', "`git` but no `rev`", None),
        ('package = "wheel"', "cells = []", "an empty list matches nothing", "leave the key out"),
        ('"16 GB"', f'"{"9" * 400} GB"', "is not a number with one of the units", None),
        ("USE_MAGMA", '"A B="', "`A B=` is not a valid environment variable", None),
        (
            '"file:///channels/nightly"',
            '"ftp://x"',
            "`ftp://x` is not the address of a channel",
            "s3://",
        ),
        (
            'env = { USE_MAGMA = "0" }\nneeds = { memory = "64 GB", time = "2 h" }',
            "",
            "this override sets nothing",
            "give env, pass_env, cmake, archs, backend, cache or needs",
        ),
        ('name = "torch"', 'name = "to rch"', "`to rch` is not a package name", "letters"),
        (
            'version = "2.14.0"',
            'version = "2.14.0"\nrelease = "1.9"',
            "no pins for torch release `1.9`",
            None,
        ),
        ("[channel.nightly]", '[channel."a b"]', "`a b` can't be part of an identifier", None),
        (
            "[channel.nightly]",
            '[channel.nightly]\npromote_from = "nightly"',
            "`nightly` is not another channel",
            "only this one",
        ),
        ("[subset.pr]", "[store]\nurl = 3\n[subset.pr]", "`store.url` must be a string", None),
        ("[project]", "store = 3\n[project]", "`store` must be a table", None),
        (
            'env = { USE_MAGMA = "0" }',
            "env = { USE_MAGMA = 0 }",
            "`override[0].env.USE_MAGMA` must be a string",
            None,
        ),
    ],
)
def test_more_mistakes(written: str, instead: str, what: str, hint: str | None) -> None:
    first = mistake(written, instead, what)
    assert hint is None or hint in (first.hint or "")


def test_a_misspelt_table_is_one_mistake() -> None:
    assert len(problems(SMALL.replace("[project]", "[projcet]"))) == 1


def test_an_inclusion_that_matches_nothing_of_the_matrix_is_a_mistake() -> None:
    more = '\n[[matrix.include]]\ncompute = "cu12*"\nreason = "old"\n'
    (found,) = problems(SMALL + more)
    assert found.what == "this matches no compute of the matrix, so it includes nothing"
    assert found.span is not None
    assert found.span.text == 'compute = "cu12*"'


def test_channels_may_not_promote_in_circles() -> None:
    more = (
        '[channel.a]\nurl = "x"\npromote_from = "b"\n[channel.b]\nurl = "y"\npromote_from = "a"\n'
    )
    assert [item.what for item in problems(SMALL + more)] == [
        "`a` promotes to itself through other channels",
        "`b` promotes to itself through other channels",
    ]
    both = '[channel.a]\nurl = "x"\npromote_from = "nightly"\nsubset = "pr"\n'
    assert "not both" in problems(SMALL + both)[0].what


def test_a_list_on_the_command_line_is_blamed_there() -> None:
    (found,) = problems(SMALL, 'matrix.python=["cp312", "cp321"]')
    assert found.span is not None
    assert found.span.file == "--set"


def test_nesting_without_end_is_refused() -> None:
    (found,) = problems("x = " + "[" * 5000 + "]" * 5000)
    assert "too deeply" in found.what
