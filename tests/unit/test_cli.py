"""Commands from the outside: what they print, where, and how they end."""

import hashlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.helpers import EXAMPLE, SMALL, Command

from torchyard.errors import TorchyardError, all_errors


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "torchyard.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def test_exit_codes_are_unique() -> None:
    codes = [error.exit_code for error in all_errors()]
    assert len(set(codes)) == len(codes)
    assert all(error.__doc__ for error in all_errors())


def test_plan_prints_a_table(torchyard: Command, file: Path) -> None:
    result = torchyard("plan", "-f", file)
    assert result.code == 0
    assert result.out.startswith("torch 2.14.0 (recipe pytorch): 8 packages, 34 jobs\n")
    assert "nobody wants it" in result.out
    assert result.err == ""


def test_plan_lists_identifiers(torchyard: Command, file: Path) -> None:
    result = torchyard("plan", "-f", file, "--list", "cells", "cu130")
    assert result.out.splitlines() == [
        "torch-2.14.0/linux-x86_64/cu130-mkl/cp312/wheel",
        "torch-2.14.0/linux-x86_64/cu130-mkl/any/libtorch",
    ]


def test_identifiers_are_those_of_the_plan(torchyard: Command) -> None:
    listed = torchyard("plan", "-f", EXAMPLE, "--list", "cells").out.splitlines()
    assert listed == json.loads(torchyard("plan", "-f", EXAMPLE, "--json").out)["cells"]


def test_identifiers_of_jobs_are_their_cells(torchyard: Command, file: Path) -> None:
    by_job = torchyard("plan", "-f", file, "--list", "cells", "core:cu130")
    by_value = torchyard("plan", "-f", file, "--list", "cells", "cu130")
    assert by_job.code == 0
    assert by_job.out == by_value.out


def test_plan_json_has_the_example_s_counts(torchyard: Command) -> None:
    document = json.loads(torchyard("plan", "-f", EXAMPLE, "--json").out)
    summary = document["summary"]
    assert document["version"] == 1
    assert summary["packages"]["wheel"] == 145
    assert summary["packages"]["libtorch"] == 12
    assert {p: kinds.get("wheel", 0) for p, kinds in summary["platforms"].items()} == {
        "linux-x86_64": 56,
        "linux-aarch64": 32,
        "linux-s390x": 6,
        "windows-x86_64": 40,
        "windows-arm64": 3,
        "macos-arm64": 8,
        "macos-x86_64": 0,
    }
    assert len(document["jobs"]) == 1260
    counts = {"compilations": 30, "total": 343, "saved": 202, "served": 0}
    assert {key: summary[key] for key in counts} == counts


def test_the_json_alone_proves_its_fingerprints(torchyard: Command) -> None:
    jobs = json.loads(torchyard("plan", "-f", EXAMPLE, "--subset", "nightly", "--json").out)["jobs"]
    seen: dict[str, str] = {}
    for job in jobs:
        kept = ("recipe", "scope", "settings", "stage", "stage_revision")
        payload = {key: job[key] for key in kept}
        payload["inputs"] = sorted(seen[name] for name in job["inputs"])
        canonical = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        seen[job["id"]] = hashlib.sha256(canonical.encode()).hexdigest()
        assert seen[job["id"]] == job["fingerprint"]


@pytest.mark.parametrize("form", ["mermaid", "dot"])
def test_diagrams_fold_what_repeats(torchyard: Command, form: str) -> None:
    drawing = torchyard("plan", "-f", EXAMPLE, "--subset", "release", "--diagram", form).out
    assert "bindings × 32" in drawing
    assert "linux-s390x" in drawing
    assert "publish" in drawing
    assert len(drawing.splitlines()) < 250


def test_an_extension_is_drawn_without_a_core(torchyard: Command, tmp_path: Path) -> None:
    path = tmp_path / "torchyard.toml"
    torchyard("init", "-f", path, "--recipe", "extension", "--name", "scatter", "--version", "1.0")
    drawing = torchyard("plan", "-f", path, "--diagram", "mermaid").out
    assert "bindings" in drawing
    assert "core" not in drawing


def test_forms_of_output_exclude_each_other(torchyard: Command, file: Path) -> None:
    result = torchyard("plan", "-f", file, "--json", "--list", "cells")
    assert result.code == 2
    assert "exclude each other" in result.err


def test_warnings_are_talk(torchyard: Command, file: Path) -> None:
    file.write_text(SMALL.replace('"accelerate"]', '"accelerate", "nvpl"]'), encoding="utf-8")
    result = torchyard("plan", "-f", file, "--json")
    assert result.code == 0
    assert result.err == "warning: no cell has blas `nvpl`\n"
    assert json.loads(result.out)["warnings"] == ["no cell has blas `nvpl`"]


def test_set_changes_a_value(torchyard: Command, file: Path) -> None:
    result = torchyard("plan", "-f", file, "--set", "project.version=2.13.0", "--list", "cells")
    assert result.out.startswith("torch-2.13.0/")


def test_diff_fails_on_vanish_only_when_asked(torchyard: Command, file: Path) -> None:
    other = file.with_name("other.toml")
    other.write_text(SMALL.replace('["cp311", "cp312"]', '["cp312"]'), encoding="utf-8")
    assert torchyard("plan", "diff", file, other).code == 0
    result = torchyard("plan", "diff", file, other, "--fail-on-vanish")
    assert result.code == 8
    assert "2 packages gone" in result.out
    assert "the new plan lacks 2 packages of the old one" in result.err
    assert torchyard("plan", "diff", other, file, "--fail-on-vanish").code == 0


def test_diff_json(torchyard: Command, file: Path) -> None:
    other = file.with_name("other.toml")
    other.write_text(SMALL.replace('MAGMA = "0"', 'MAGMA = "1"'), encoding="utf-8")
    document = json.loads(torchyard("plan", "diff", file, other, "--json").out)
    assert document["unchanged"] == 6
    assert document["rebuilt"][0]["causes"] == [
        {"what": "core env.USE_MAGMA: 0 → 1", "origin": f"{other}:28"}
    ]


def test_explain_a_planned_cell(torchyard: Command, file: Path) -> None:
    identifier = "torch-2.14.0/linux-x86_64/cu130-mkl/cp312/wheel"
    (document,) = json.loads(torchyard("explain", identifier, "-f", file, "--json").out)[
        "explained"
    ]
    assert document["planned"]
    assert document["subsets"] == ["pr"]
    assert {item["name"]: item["origin"] for item in document["admitted_by"]} == {
        "platform": "torchyard.toml:10",
        "compute": "torchyard.toml:11",
        "blas": "torchyard.toml:12",
        "python": "torchyard.toml:13",
        "package": "torchyard.toml:14",
    }
    shared = {job["id"].split(":")[0]: job["packages"] for job in document["jobs"]}
    assert shared == {
        "source": 8, "core": 2, "bindings": 1, "package": 1, "check": 1, "smoke": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("linux-x86_64/cu130-mkl/cp311/wheel", "nobody wants it"),
        ("macos-arm64/cu130-accelerate/cp312/wheel", "cu130 is not made for macos-arm64"),
        ("macos-arm64/cpu-mkl/cp312/wheel", "mkl is not made for macos-arm64"),
        ("linux-x86_64/cpu-mkl/cp310/wheel", "[matrix] has no python `cp310`"),
        ("linux-x86_64/cpu-mkl/any/wheel", "a wheel is made for each Python"),
        ("linux-x86_64/cpu-mkl/cp312/libtorch", "a libtorch is the same for every Python"),
        ("linux-s390x/cpu-openblas/cp312/wheel", "[matrix] has no platform `linux-s390x`"),
    ],
)
def test_explain_a_missing_cell(torchyard: Command, file: Path, cell: str, reason: str) -> None:
    result = torchyard("explain", f"torch-2.14.0/{cell}", "-f", file)
    assert result.code == 0
    assert "is not planned" in result.out
    assert reason in result.out


def test_explain_names_the_input_that_changed(torchyard: Command, file: Path) -> None:
    old = file.with_name("old.toml")
    old.write_text(SMALL.replace('MAGMA = "0"', 'MAGMA = "1"'), encoding="utf-8")
    job = "core:torch-2.14.0/linux-x86_64/cu130-mkl"
    result = torchyard("explain", job, "-f", file, "--against", old)
    assert "core env.USE_MAGMA: 1 → 0 (torchyard.toml:28)" in result.out
    cell = "torch-2.14.0/linux-x86_64/cu130-mkl/cp312/wheel"
    assert "USE_MAGMA: 1 → 0" in torchyard("explain", cell, "-f", file, "--against", old).out
    same = torchyard("explain", "source:torch-2.14.0", "-f", file, "--against", old)
    assert "unchanged" in same.out


def test_explain_a_publish_job(torchyard: Command) -> None:
    result = torchyard("explain", "publish:torch-2.14.0/nightly", "-f", EXAMPLE)
    assert result.code == 0
    assert "157 packages" in result.out


@pytest.mark.parametrize(
    ("identifier", "code", "said"),
    [
        ("publish:torch-2.14.0/release", 0, "it takes packages from channel test"),
        ("publish:torch-2.14.0/nigthly", 5, "did you mean `nightly`?"),
        ("core:torch-2.14.0/linux-aarch64/cu130-openblas", 0, "aarch64 CUDA builds use NVPL"),
        ("bindings:torch-2.14.0/linux-s390x/cpu-openblas/cp315", 0, "no Python 3.15 in the s390x"),
        ("bindings:torch-2.14.0/linux-s390x/cpu-openblas/cp313t", 0, "has no python `cp313t`"),
        ("smoke:torch-2.14.0/linux-s390x/cpu-openblas/cp315/wheel", 0, "no Python 3.15"),
        ("torch-2.14.0/any/any-any/any/any", 5, "unknown platform `any`"),
        ("bindings:torch-2.14.0/linux-x86_64/cpu-mkl/any", 5, "bindings are made for each Python"),
        ("core:torch-2.14.0/linux-x86_64/cu131-mkl", 5, "did you mean `cu130`?"),
    ],
)
def test_explain_a_missing_job(torchyard: Command, identifier: str, code: int, said: str) -> None:
    result = torchyard("explain", identifier, "-f", EXAMPLE)
    assert result.code == code
    assert said in result.out + result.err


def test_explain_a_stage_that_the_recipe_lacks(torchyard: Command, tmp_path: Path) -> None:
    path = tmp_path / "torchyard.toml"
    flags = ("--recipe", "extension", "--name", "x", "--version", "1", "--platform", "linux-x86_64")
    torchyard("init", "-f", path, *flags)
    result = torchyard("explain", "core:x-1/linux-x86_64/cpu-torch2.14", "-f", path)
    assert "recipe extension has no stage core" in result.out


def test_explain_what_came_and_what_went(torchyard: Command, file: Path) -> None:
    old = file.with_name("old.toml")
    old.write_text(SMALL.replace('["cp311", "cp312"]', '["cp310", "cp312"]'), encoding="utf-8")
    came = "bindings:torch-2.14.0/linux-x86_64/cpu-mkl/cp311"
    result = torchyard("explain", came, "-f", file, "--against", old)
    assert "matrix.python gained `cp311` (torchyard.toml:13)" in result.out
    went = "torch-2.14.0/linux-x86_64/cpu-mkl/cp310/wheel"
    result = torchyard("explain", went, "-f", file, "--against", old)
    assert "matrix.python lost `cp310`" in result.out


def test_explain_another_version(torchyard: Command, file: Path) -> None:
    result = torchyard("explain", "source:torch-2.13.0", "-f", file)
    assert result.code == 5
    assert "this file builds" in result.err


def test_config_show(torchyard: Command, file: Path) -> None:
    document = json.loads(torchyard("config", "show", "-f", file, "--json").out)
    rows = {item["key"]: (item["value"], item["origin"]) for item in document["values"]}
    assert rows["project.recipe"] == ('"pytorch"', "default")
    assert rows["project.name"] == ('"torch"', "torchyard.toml:2")
    assert "project.name" in torchyard("config", "show", "-f", file).out


def test_config_schema_is_the_committed_one(torchyard: Command) -> None:
    committed = EXAMPLE.parents[2] / "src/torchyard/data/schemas/torchyard.json"
    assert torchyard("config", "schema").out == committed.read_text(encoding="utf-8")


@pytest.mark.parametrize("recipe", ["pytorch", "extension"])
def test_init_writes_a_file_that_plans(torchyard: Command, tmp_path: Path, recipe: str) -> None:
    path = tmp_path / "torchyard.toml"
    flags = ("--recipe", recipe, "--name", "thing", "--compute", "cpu,cu130", "--torch", "2.13")
    platforms = ("--platform", "linux-x86_64,macos-arm64")
    assert torchyard("init", "-f", path, *flags, *platforms).code == 0
    assert torchyard("plan", "-f", path).code == 0
    again = torchyard("init", "-f", path, *flags)
    assert again.code == 7
    assert "--force" in again.err
    assert torchyard("init", "-f", path, *flags, "--force").code == 0


def test_init_refuses_what_would_not_plan(torchyard: Command, tmp_path: Path) -> None:
    path = tmp_path / "torchyard.toml"
    result = torchyard("init", "-f", path, "--compute", "cuda")
    assert result.code == 2
    assert "unknown compute `cuda`" in result.err
    empty = torchyard("init", "-f", path, "--platform", "windows-arm64", "--compute", "cu130")
    assert "these answers make no plan: the matrix is empty" in empty.err
    for flag in ("--python", "--name", "--git"):
        assert torchyard("init", "-f", path, flag, ",," if flag == "--python" else "").code == 2
    assert not path.exists()


def test_init_takes_the_libraries_of_the_version_s_own_release(
    torchyard: Command, tmp_path: Path
) -> None:
    path = tmp_path / "torchyard.toml"
    assert torchyard("init", "-f", path, "--version", "2.13rc1").code == 0
    assert "release" not in path.read_text(encoding="utf-8")
    assert torchyard("init", "-f", path, "--version", "1.13.1", "--force").code == 0
    assert 'release = "none"' in path.read_text(encoding="utf-8"), "the tables have no 1.13"


def test_init_takes_a_directory_and_odd_names(torchyard: Command, tmp_path: Path) -> None:
    (tmp_path / "my src").mkdir()
    path = tmp_path / "torchyard.toml"
    flags = ("--recipe", "extension", "--name", "x", "--torch", "2.13,2.14")
    assert torchyard("init", "-f", path, *flags, "--path", "my src").code == 0
    assert len(torchyard("plan", "-f", path, "--list", "cells").out.splitlines()) == 2
    assert torchyard("init", "-f", path, *flags, "--git", 'C:\\"src"', "--force").code == 0
    assert torchyard("plan", "-f", path).code == 0


def test_options_before_a_subcommand_are_refused(torchyard: Command, file: Path) -> None:
    result = torchyard("toolchain", "-f", file, "env")
    assert result.code == 2
    assert "have no effect on its subcommands" in result.err


def test_a_bare_command_shows_its_help(torchyard: Command) -> None:
    for args in ((), ("config",)):
        result = torchyard(*args)
        assert result.code == 2
        assert result.err.startswith("Usage: torchyard")


def test_a_diagram_is_of_packages(torchyard: Command, file: Path) -> None:
    result = torchyard("plan", "-f", file, "core:*", "--diagram", "dot")
    assert result.code == 2
    assert "not single jobs" in result.err


def test_a_plan_without_packages_has_a_table(torchyard: Command, file: Path) -> None:
    result = torchyard("plan", "-f", file, "core:*")
    assert result.code == 0
    assert "0 packages, 4 jobs" in result.out
    assert "sharing" not in result.out


def test_diff_names_the_side_that_lacks_a_subset(torchyard: Command, file: Path) -> None:
    other = file.with_name("other.toml")
    other.write_text(SMALL.replace("[subset.pr]", "[subset.pull]"), encoding="utf-8")
    result = torchyard("plan", "diff", other, file, "--subset", "pr")
    assert result.code == 5
    assert "other.toml` has no subset `pr`" in " ".join(result.err.split())
    assert torchyard("plan", "diff", "", file).code == 2


def test_compared_files_are_no_source(torchyard: Command, file: Path) -> None:
    lines = 'git = "https://example.org/pytorch"\nrev = "v2.14.0"'
    file.write_text(SMALL.replace(lines, 'path = "."'), encoding="utf-8")
    other = file.with_name("other.toml")
    other.write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    assert "8 packages unchanged" in torchyard("plan", "diff", file, other).out
    explained = torchyard("explain", "source:torch-2.14.0", "-f", file, "--against", other)
    assert "unchanged" in explained.out


@pytest.mark.parametrize(
    "flags",
    [
        ("--torch", "2.13,2.14"),
        ("--path", ".", "--git", "x"),
        ("--version", "9bad"),
        ("--compute", "cpu,cpu"),
    ],
)
def test_init_refuses_flags_that_it_would_drop(
    torchyard: Command, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    assert torchyard("init", "-f", tmp_path / "x.toml", *flags).code == 2


def test_no_width_is_no_limit(
    torchyard: Command, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    assert "8 packages" in torchyard("plan", "-f", file).out


def test_diff_warns_of_source_directories(torchyard: Command, file: Path) -> None:
    lines = 'git = "https://example.org/pytorch"\nrev = "v2.14.0"'
    file.write_text(SMALL.replace(lines, 'path = "."'), encoding="utf-8")
    assert "both sides are planned with" in torchyard("plan", "diff", file, file).err


def test_usage_errors_point_to_help(torchyard: Command) -> None:
    result = torchyard("plan", "--nonsense")
    assert result.code == 2
    assert "see `torchyard plan --help`" in result.err
    assert torchyard("plant").code == 2


def test_traceback_on_demand(torchyard: Command, tmp_path: Path) -> None:
    told = torchyard("--traceback", "plan", "-f", tmp_path / "none.toml")
    assert told.err.startswith("Traceback (most recent call last)")
    assert "none.toml" in told.err.splitlines()[-1]
    assert told.code == TorchyardError.exit_code


def test_help_and_version(torchyard: Command) -> None:
    assert "explain" in torchyard("--help").out
    assert torchyard("--version").out.startswith("torchyard")


@pytest.fixture
def ends_as_before() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.usefixtures("ends_as_before")
def test_a_command_that_ends_tidily_leaves_the_tests_as_they_were(
    torchyard: Command, tmp_path: Path
) -> None:
    assert torchyard("run", "source:demo-1.0", "-f", tmp_path / "none.toml").code == 7
