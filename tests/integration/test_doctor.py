"""A machine that doctor finds ready can be configured for; one that it refuses can't.

Every sabotage is inspected by all checks, and the sample project is configured for real.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.forked import TORCHYARD
from tests.support.recipe import SAMPLE, SWITCHES, call, run
from tests.support.sabotage import SABOTAGES, World, write

from torchyard.doctor.tree import cache_entries
from torchyard.model.severity import Severity

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Make a machine that is ready; limits of this process are as before afterwards."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield World(tmp_path, monkeypatch)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize("name", SABOTAGES)
def test_all_checks_together_name_a_sabotage_and_are_green_after_its_cure(
    name: str, world: World
) -> None:
    spoil = SABOTAGES[name]
    spoil.spoil(world)
    found = world.findings()
    assert spoil.check in {one.check for one in found}
    world.mend([one for one in found if one.check == spoil.check], spoil)
    assert world.findings() == []


# ---------------------------------------------------------------------- configured for real


class Checkout:
    """The sample project, to be built by hand in a shell of its own."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tinytorch"
        self.first = folder / "first"
        self.blas = folder / "openblas"
        shutil.copytree(SAMPLE, self.tree, ignore=shutil.ignore_patterns(".torchyard", "build"))
        self.first.mkdir()
        write(self.blas, {"include/cblas.h": "", "lib/libopenblas.so": ""})
        own = {n: text for n, text in os.environ.items() if not n.startswith(SWITCHES)}
        path = f"{self.first}:{Path(sys.executable).parent}:/usr/bin:/bin"
        self.env = own | {"PATH": path, "BLAS": "OpenBLAS", "OpenBLAS_HOME": str(self.blas)}
        self.env["CMAKE_PREFIX_PATH"] = ""

    def script(self, name: str, text: str) -> None:
        (self.first / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (self.first / name).chmod(0o755)

    def is_ready(self) -> bool:
        """Whether doctor finds no error."""
        words = ("doctor", "--source", self.tree, "--compute", "cpu", "--json")
        program = (sys.executable, "-m", "torchyard", *map(str, words))
        done = subprocess.run(program, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 7), done.stderr
        return done.returncode == 0

    def is_configured(self) -> bool:
        """Whether CMake configures it, with OpenMP and the BLAS that is asked for."""
        shutil.rmtree(self.tree / "build", ignore_errors=True)
        program = ("python", "setup.py", "build", "--cmake-only")
        env = self.env | {"USE_CUDA": "0"}
        done = subprocess.run(program, cwd=self.tree, env=env, capture_output=True, check=False)
        entries = cache_entries(self.tree / "build")
        shutil.rmtree(self.tree / "build", ignore_errors=True)
        features = entries.get("USE_OPENMP") == "ON" and entries.get("BLAS_INFO") == "open"
        return done.returncode == 0 and features


def _old_cmake(checkout: Checkout) -> None:
    says = 'test "$1" = --version && echo "cmake version 2.8.12" && exit'
    checkout.script("cmake", f'{says}\necho "CMake 3.25 or higher is required" >&2; exit 1')


def _no_ninja(checkout: Checkout) -> None:
    checkout.script("ninja", "exit 127")


def _no_compiler(checkout: Checkout) -> None:
    checkout.env["CXX"] = "/opt/gone/bin/g++"


def _no_openmp(checkout: Checkout) -> None:
    refuse = 'case "$*" in *-fopenmp*) echo "error: no OpenMP" >&2; exit 1;; esac'
    checkout.script("cc", 'exec /usr/bin/cc "$@"')
    checkout.script("c++", f'{refuse}\nexec /usr/bin/c++ "$@"')


def _no_submodule(checkout: Checkout) -> None:
    shutil.rmtree(checkout.tree / "third_party/tinyfmt")


def _no_blas(checkout: Checkout) -> None:
    """The system may have an OpenBLAS; no machine of ours has MKL."""
    checkout.env["BLAS"] = "MKL"


BREAKS = (_old_cmake, _no_ninja, _no_compiler, _no_openmp, _no_submodule, _no_blas)


def test_what_doctor_finds_ready_is_configured_with_its_features(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    assert checkout.is_ready()
    assert checkout.is_configured()


@pytest.mark.parametrize("spoil", BREAKS)
def test_what_doctor_refuses_is_not_configured_as_asked(
    tmp_path: Path, spoil: Callable[[Checkout], None]
) -> None:
    checkout = Checkout(tmp_path)
    spoil(checkout)
    assert not checkout.is_ready()
    assert not checkout.is_configured()


# ------------------------------------------------------------------------- this very machine


def test_there_is_no_false_alarm_for_jobs_on_this_machine(tmp_path: Path) -> None:
    """The cells of the sample that CI builds here: no error, and no warning either."""
    shutil.copytree(SAMPLE, tmp_path / "sample", ignore=shutil.ignore_patterns(".torchyard"))
    file = tmp_path / "sample/torchyard.toml"
    said = call(*TORCHYARD, "doctor", "cpu", "--skip", "smoke:*", "-f", file, "--json")
    assert json.loads(said)["findings"] == []


def test_a_cell_for_which_the_toolkit_is_missing_is_refused(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "sample", ignore=shutil.ignore_patterns(".torchyard"))
    file = tmp_path / "sample/torchyard.toml"
    text = file.read_text(encoding="utf-8").replace('"cu130", "cu132"', '"cu126"')
    file.write_text(text.replace('"cu130"', '"cu126"'), encoding="utf-8")
    done = run(*TORCHYARD, "doctor", "cu126", "--skip", "smoke:*", "-f", file, "--json")
    assert done.returncode == 7
    found = json.loads(done.stdout)["findings"]
    assert [one["check"] for one in found if one["severity"] == Severity.ERROR] == ["cuda-toolkit"]
