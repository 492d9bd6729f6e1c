"""One grammar of names for all commands: whatever is printed can be typed."""

import re
from pathlib import Path

import pytest
from tests.support.helpers import SMALL, WORKS, Command, make_project, plan_of

from torchyard.errors import SelectionError
from torchyard.model.recipe import Stage
from torchyard.plan.select import PlanSelection

LABEL = "demo-1.0"
PRINTED = re.compile(r"(?:\b(?:source|core|bindings|package|check|smoke):)?[\w.-]+(?:/[\w.-]+)+")


def cells_of(*words: str) -> list[str]:
    return [cell.path for cell in plan_of(SMALL, PlanSelection(select=words)).cells()]


def error_of(*words: str) -> str:
    with pytest.raises(SelectionError) as caught:
        plan_of(SMALL, PlanSelection(select=words))
    return f"{caught.value}: {caught.value.diagnostics[0].hint}"


def test_dimensions_narrow_and_values_add() -> None:
    assert cells_of("cp312", "cu130") == ["linux-x86_64/cu130-mkl/cp312/wheel"]
    assert cells_of("cu130 cp312") == cells_of("cp312", "cu130"), "an argument may have spaces"
    assert len(cells_of("cp311", "cp312", "cpu")) == len(cells_of("cpu", "wheel")) == 4
    assert cells_of("cu130-mkl/cp312", "wheel") == ["linux-x86_64/cu130-mkl/cp312/wheel"]
    assert len(cells_of("cu130-mkl/cp312", "cp311")) == 3, "they share a dimension"
    assert cells_of("*/cpu-*/*", "linux*", "any") == ["linux-x86_64/cpu-mkl/any/libtorch"]


def test_any_part_is_enough() -> None:
    one = ["linux-x86_64/cpu-mkl/cp312/wheel"]
    for text in (
        "linux-x86_64/cpu-mkl/cp312",
        "cpu-mkl/cp312/wheel",
        "cpu-mkl/cp312",
        "cpu/cp312/wheel linux-x86_64",
        "cpu-*/cp312/* linux*",
    ):
        assert cells_of(text) == one, text
    cores = plan_of(SMALL, PlanSelection(select=("core", "cp311")))
    assert cores.stage_counts() == {Stage.SOURCE: 1, Stage.CORE: 2}, "those that cp311 needs"
    assert plan_of(SMALL, PlanSelection(select=("core:cu130",))).jobs[-1].path == (
        "linux-x86_64/cu130-mkl"
    )
    assert plan_of(SMALL, PlanSelection(select=("publish",))).stage_counts()[Stage.PUBLISH] == 1


def test_what_is_meant_must_be_clear() -> None:
    assert error_of("cp321").endswith("did you mean `cp312`?")
    assert error_of("cpu-mkl/cp321").endswith("did you mean `cp312`?")
    assert error_of("cores:*").endswith("did you mean `core`?")
    assert error_of("cp*").startswith("`cp*` can be read as compute and as python: ")
    assert "`cu130-mkl/cp311` matches no cell or job" in error_of("cu130-mkl/cp311", "cp312")
    assert "no cell is left that is `cu130 cp311`" in error_of("cu130", "cp311")


def test_an_empty_selector_does_not_select_everything(torchyard: Command, tmp_path: Path) -> None:
    """It did: `build "$CELL"` without the variable built all."""
    assert "an empty selector would select everything" in error_of("")
    assert "an empty selector would select everything" in error_of("cp312", " ")
    at = ("-f", make_project(tmp_path, WORKS))
    for words in (["build", ""], ["doctor", ""], ["plan", "--skip", ""]):
        done = torchyard(*words, *at)
        assert (done.code, "an empty selector would select everything" in done.err) == (5, True), (
            words
        )


def test_what_commands_print_can_be_typed(torchyard: Command, tmp_path: Path) -> None:
    """Names are taken from the output of commands, and given to all that take names."""
    more = '\n[channel.all]\nurl = "s3://nowhere/all"\n\n[ci]\ninstall = "pip install torchyard"\n'
    file = make_project(tmp_path, WORKS + more)
    at = ("-f", file)
    assert torchyard("build", *at, "core", "package", "check", "smoke").code == 0
    printed = [
        torchyard("plan", *at, "--list", "jobs").out,
        torchyard("plan", *at, "--list", "cells").out,
        torchyard("store", "ls", *at).out,
        torchyard("status", *at).out,
        torchyard("explain", *at, "package:*").out,
        torchyard("build", *at, "cp312").err,
    ]
    planned = set(printed[0].split())
    found = {name for text in printed for name in PRINTED.findall(text) if "cpu-openblas" in name}
    names = sorted(name for name in found if not name.startswith("/") and "*" not in name)
    assert len(names) == 13, names
    for name in names:
        stage, colon, cell = name.rpartition(":")
        path = cell.removeprefix(f"{LABEL}/")
        job = f"{stage or 'package'}:{LABEL}/{path}"
        assert job in planned
        assert torchyard("explain", *at, name).out.splitlines()[0].endswith(path), name
        chosen = torchyard("plan", *at, "--list", "jobs", name).out.split()
        assert job in chosen
        assert not colon or {one for one in chosen if one.startswith(f"{stage}:")} == {job}
        if stage == "core" or path.count("/") == 1:
            assert torchyard("plan", *at, "--list", "cells", name).code == 0
        else:
            listed = torchyard("plan", *at, "--list", "cells", name).out.split()
            assert all(path in one for one in listed)
        assert torchyard("build", *at, name).code == 0, name
        assert torchyard("run", *at, name).code == 0, name
        assert torchyard("explain", "rebuild", *at, name).code == 0, name
        assert torchyard("diagnose", *at, name).code == 0, name
        assert torchyard("doctor", *at, name).code in (0, 7), name
        shown = torchyard("store", "show", *at, name)
        assert shown.code == 0, name
        assert path in shown.out
        assert torchyard("report", *at, name, "-o", file.with_name("r.html")).code == 0, name
        assert torchyard("ci", "explain", *at, name, "github").code == 0, name

    text = torchyard("explain", *at, "package:*").out
    assert re.findall(r"^package:\S+", text, re.MULTILINE) == [
        f"package:{LABEL}/linux-x86_64/cpu-openblas/{python}/wheel" for python in ("cp311", "cp312")
    ]
    assert "publish:demo-1.0/all" in torchyard("explain", *at, "publish").out
    package = "package:demo-1.0/linux-x86_64/cpu-openblas/cp312/wheel"
    assert torchyard("run", *at, "cp312").err == f"cached   {package}\n"
    several = torchyard("run", *at, "wheel")
    assert several.code == 5
    assert "`wheel` names 2 jobs: package:demo-1.0/linux-x86_64/cpu-openblas/cp311/" in several.err
