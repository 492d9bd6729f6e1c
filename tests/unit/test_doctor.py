"""`torchyard doctor`: every sabotage of a machine is named, and its cure makes it well again."""

import json
import resource
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.helpers import ROOT, Command
from tests.support.sabotage import (
    HEAVY,
    SABOTAGES,
    World,
    cache_of_another_compiler,
    stand_in_cuda,
    stand_in_driver,
    write,
)

from torchyard.compute.cuda import machine_checks
from torchyard.doctor.bench import Bench, BuildDemand
from torchyard.doctor.check import MachineFinding
from torchyard.doctor.ranges import range_of
from torchyard.doctor.table import machine_table, parse_machine_table
from torchyard.doctor.tree import cache_entries, python_range, read_tree
from torchyard.engines.admission import JOB_CHECKS, Examination, all_machine_checks, examine
from torchyard.errors import DataError
from torchyard.features.doctor import use_case
from torchyard.features.doctor.report import cure_lines
from torchyard.host.files import read_data
from torchyard.model.severity import Severity
from torchyard.model.toolchain import Toolchain


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Make a machine that is ready; limits of this process are as before afterwards."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield World(tmp_path, monkeypatch)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def sabotages() -> Iterator[object]:
    """All of them; CI leaves out those that take long."""
    for name in SABOTAGES:
        yield pytest.param(name, marks=[pytest.mark.slow] if name in HEAVY else [])


def test_more_than_twenty_sabotages_are_quick() -> None:
    assert len(SABOTAGES.keys() - HEAVY) > 20


@pytest.mark.parametrize("name", list(sabotages()))
def test_a_sabotage_is_named_and_its_cure_mends_it(name: str, world: World) -> None:
    spoil = SABOTAGES[name]
    spoil.spoil(world)
    found = world.findings(spoil.check)
    assert [one for one in found if spoil.says in one.what], found
    for one in found:
        python = shlex.quote(f"{world.venv}/bin/python")
        assert one.cure.replace(python, "python").startswith(spoil.types)
        assert one.why
        assert not (one.system and one.fixable)
    world.mend(found, spoil)
    assert world.findings(spoil.check) == []


def test_every_check_has_a_sabotage_and_a_line_in_the_guide() -> None:
    checks = all_machine_checks()
    never = {"disk", "cuda-toolkit", "cuda-libraries"}  # tests of their own, below
    never |= {"toolkit", "tree-version", "cuda-mixture"}  # of jobs only: see test_admission.py
    assert {one.check for one in SABOTAGES.values()} == checks.keys() - never
    guide = (ROOT / "docs/guides/inspect-a-machine.md").read_text(encoding="utf-8")
    assert [name for name in (*checks, *JOB_CHECKS) if f"`{name}`" not in guide] == []
    assert all(check.page for check in checks.values())


def test_a_machine_that_is_ready_has_no_finding(world: World) -> None:
    assert world.findings() == []


# --------------------------------------------------------------------- what can't be cured


@pytest.mark.parametrize(("store", "cure"), [(".", "torchyard store gc"), ("", ""), ("/proc", "")])
def test_a_full_disk_is_named_for_each_stage(store: str, cure: str, world: World) -> None:
    """Collecting garbage helps if the store is on that disk; one in a bucket is on none."""
    demand = BuildDemand(title="jobs", disk={"core": 10**13}, toolchain=Toolchain(), store=store)
    (one,) = examine(Bench(demand, {}), [all_machine_checks()["disk"]]).findings
    assert one.what.startswith("core needs 10 TB of disk in ")
    assert one.cure == cure


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("*(volatile int *)0 = 1; return 0;", "libcuda.so.1 crashes (SIGSEGV)"),
        ("return 804;", "answers with error 804"),
    ],
)
def test_a_broken_driver_does_not_break_the_doctor(code: str, said: str, world: World) -> None:
    stand_in_cuda(world, "13.0")
    stand_in_driver(world, code, 12020)
    (one,) = world.findings("cuda-driver")
    assert said in one.what


def test_a_toolkit_that_is_asked_for_is_installed_or_chosen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in_cuda(world, "12.6")
    world.computes = ("cu128",)
    monkeypatch.setattr(machine_checks, "system_roots", dict)
    (one,) = world.findings("cuda-toolkit")
    assert one.what.startswith("there is no CUDA 12.8; the build uses 12.6")
    there = stand_in_cuda(world, "12.8")
    monkeypatch.setattr(machine_checks, "system_roots", lambda: {there: "12.8.93"})
    world.env["PATH"] = world.env["PATH"].replace(f"{there}/bin:", "")
    (one,) = world.findings("cuda-toolkit")
    world.type(one.cure)
    assert world.findings("cuda-toolkit") == []


def test_a_newer_c_library_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    root = stand_in_cuda(world, "13.0")
    monkeypatch.setattr(machine_checks, "glibc_version", lambda: "2.42")
    assert world.findings("cuda-host-compiler") == []  # it compiles a kernel, as Debian's does
    says = 'echo "release 13.0, V13.0.48"'
    world.script("nvcc", f'[ "$1" = --version ] && {says} || exit 1', folder=root / "bin")
    (one,) = world.findings("cuda-host-compiler")
    assert one.what == ("CUDA 13.0 does not work with glibc 2.42: the newest it accepts is 2.41")


def test_cudnn_whose_header_is_of_another_version_is_named(world: World) -> None:
    root = stand_in_cuda(world, "13.0")
    del world.env["USE_CUDNN"]
    lines = "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 10\n#define CUDNN_PATCHLEVEL 2\n"
    write(root, {"include/cudnn_version.h": lines, "lib/libcudnn.so.9.1.0": ""})
    (root / "lib/libcudnn.so").symlink_to("libcudnn.so.9.1.0")
    (one,) = world.findings("cuda-libraries")
    assert one.what.startswith("cuDNN has headers of 9.10.2 and a library of 9.1.0, in ")
    (root / "lib/libcudnn.so").unlink()
    (root / "lib/libcudnn.so.9.1.0").rename(root / "lib/libcudnn.so.9.10.2")
    (root / "lib/libcudnn.so").symlink_to("libcudnn.so.9.10.2")
    assert world.findings("cuda-libraries") == []
    seen = examine(world.bench(), [all_machine_checks()["cuda-libraries"]]).seen
    assert [one.what.partition(" (")[0] for one in seen] == [
        "cuBLAS",
        "cuDNN 9.10.2",
        "NCCL: the tree's own copy",
    ]
    del world.env["USE_MAGMA"]
    (one,) = world.findings("cuda-libraries")
    assert one.what == "there is no MAGMA with its headers"
    assert one.cure == "conda install -y -c pytorch magma-cuda130"


# -------------------------------------------------------------------------- jobs of a file


@pytest.mark.parametrize(("version", "count"), [("3.31.10", 0), ("4.1.2", 1), ("3.17.0", 1)])
def test_pins_of_a_file_are_compared_with_the_release(version: str, count: int) -> None:
    demand = BuildDemand(
        title="jobs", release="2.6", pins={"cmake": version}, toolchain=Toolchain()
    )
    found = examine(Bench(demand, {}), [all_machine_checks()["cmake"]]).findings
    assert len(found) == count
    for one in found:
        assert one.cure == "set `cmake>=3.18,<4` as a pin in `requires` of [build]"


# ------------------------------------------------------------------------------ the command


@pytest.fixture
def shell(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Run the command in the shell of this world."""
    for name, text in world.env.items():
        monkeypatch.setenv(name, text)
    for name in ("VIRTUAL_ENV", "LD_LIBRARY_PATH", "CC", "CXX", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    return world


def test_it_says_what_is_wrong_and_fixes_what_is_safe(
    shell: World, torchyard: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {name: all_machine_checks()[name] for name in ("cmake-cache", "ninja", "disk")}
    monkeypatch.setattr(use_case, "all_machine_checks", lambda: few)
    cache_of_another_compiler(shell)
    call = ("doctor", "--source", shell.tree, "--compute", "cpu")
    said = torchyard(*call, "--json")
    assert said.code == 7
    document = json.loads(said.out)
    (one,) = document["findings"]
    assert (one["check"], one["fixable"]) == ("cmake-cache", True)
    fixed = torchyard(*call, "--fix")
    assert fixed.code == 0, fixed.err
    assert f"+ {one['cure']}" in fixed.err
    assert "it can be built" in fixed.out
    assert not (shell.tree / "build/CMakeCache.txt").exists()
    assert (shell.tree / "build/core.o").exists()


def test_commands_that_change_the_system_are_apart() -> None:
    cures = ("unset CPATH", "apt-get install -y g++", "sudo dnf install -y cmake")
    findings = [
        MachineFinding(
            check="compiler",
            severity=Severity.ERROR,
            what="",
            why="",
            cure=cure,
            fixable=False,
            system=machine_table().changes_system(cure),
        )
        for cure in cures
    ]
    document = Examination(title="", platform="", findings=findings, seen=[])
    assert list(cure_lines(document)) == [
        "to fix it:",
        "unset CPATH  # compiler",
        "to fix it for the whole machine:",
        "apt-get install -y g++  # compiler",
        "sudo dnf install -y cmake  # compiler",
    ]


def test_options_that_do_not_go_together_are_refused(
    shell: World, torchyard: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shell.folder)
    assert torchyard("doctor").code == 2
    assert torchyard("doctor", "cell", "--source", ".").code == 2
    assert torchyard("doctor", "--source", "nowhere").code == 7
    assert "did you mean" in torchyard("doctor", "--source", ".", "--compute", "cu13O").err


# ---------------------------------------------------------------------- trees and the table


@pytest.mark.parametrize(
    ("release", "cmake"),
    [
        ("1.13", ""),
        ("2.0", ">=3.18,<4"),
        ("2.7", ">=3.18,<4"),
        ("2.8", ">=3.27"),
        ("2.16", ">=3.27"),
    ],
)
def test_ranges_are_those_of_the_newest_row_that_is_not_newer(release: str, cmake: str) -> None:
    assert machine_table().ranges_for(release).cmake == cmake


def test_the_tree_decides_on_the_oldest_and_the_table_on_the_newest(tmp_path: Path) -> None:
    write(tmp_path, {"CMakeLists.txt": "cmake_minimum_required(VERSION 3.25...4.0)"})
    demand = BuildDemand(title="", release="2.6", source=str(tmp_path))
    assert range_of(Bench(demand, {}), "cmake") == ">=3.25,<4"
    assert range_of(Bench(demand, {}), "gcc") == ">=9.3"


def test_reports_have_sources_and_ranges() -> None:
    text = read_data("machine.toml")
    with pytest.raises(DataError, match="without a source"):
        parse_machine_table(text.replace('sources = ["pytorch/pytorch#190070"]', "sources = []"))
    with pytest.raises(DataError, match="no version range"):
        parse_machine_table(text.replace('versions = ">=4.3"', 'versions = "new"'))
    with pytest.raises(DataError, match="that is invalid"):
        parse_machine_table(text.replace('memory = "2.3 GB"', 'memory = "much"'))


@pytest.mark.parametrize(
    "text", ["\n", "a\n", "path = ", "if(CMAKE_COMPILER_IS_GNUCXX AND ", "cmake_minimum_required( "]
)
def test_no_file_of_a_tree_takes_long(text: str, tmp_path: Path) -> None:
    whole = text * ((1 << 20) // len(text))
    write(tmp_path, dict.fromkeys(("CMakeLists.txt", ".gitmodules", "CMakeCache.txt"), whole))
    begun = time.process_time()
    read_tree(tmp_path)
    cache_entries(tmp_path)
    assert time.process_time() - begun < 1


def test_a_requirement_by_address_is_not_installed_by_itself(world: World) -> None:
    requires = '["there @ https://example.org/there-1.tar.gz"]'
    write(world.tree, {"pyproject.toml": f"[build-system]\nrequires = {requires}\n"})
    (one,) = world.findings("build-requirements")
    assert not one.fixable


@settings(max_examples=25)
@given(text=st.text(max_size=300), version=st.text(max_size=20))
def test_no_tree_can_make_it_fail(text: str, version: str) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("CMakeLists.txt", "pyproject.toml", ".gitmodules", "build/CMakeCache.txt"):
            (folder / part).parent.mkdir(exist_ok=True)
            (folder / part).write_bytes(text.encode("utf-8", "surrogatepass"))
        (folder / "torch/csrc").mkdir(parents=True)
        (folder / "version.txt").write_bytes(version.encode("utf-8", "surrogatepass"))
        facts = read_tree(folder)
        cache_entries(folder / "build")
        python_range(folder)
        demand = BuildDemand(title="", release=facts.release, source=name)
        bench = Bench(demand, {"PATH": "/nonexistent"})
        checks = [all_machine_checks()[one] for one in ("submodules", "cmake", "ninja")]
        assert msgspec.json.encode(examine(bench, checks))
