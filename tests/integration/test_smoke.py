"""`torchyard smoke` on real packages: what works passes, what is broken is told."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from rattler_build import Stage0Recipe
from tests.support.conda import SUBDIR, find_python, index, make_channel, make_package
from tests.support.forked import TORCHYARD
from tests.support.helpers import ROOT
from tests.support.recipe import PREFIX, SAMPLE, run, shared_sample
from tests.support.schemas import validate
from tests.support.smoke import change_wheel, compile_stub, extract, make_wheel

from torchyard.errors import HostError, SmokeError, UsageError

pytestmark = pytest.mark.integration

slow = pytest.mark.slow
needs_gcc = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no compiler here")
needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="there is no bwrap here")
HEAD = "# level: import\n# about: a test\n"
OFFLINE = {"PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
CONDITIONS = {
    "wrong libraries",
    "other libgomp",
    "split site-packages",
    "read-only",
    "no home",
    "no network",
}


class Tried:
    """What the command printed as JSON, and how it ended."""

    def __init__(self, *words: object, env: Mapping[str, str] | None = None) -> None:
        done = run(*TORCHYARD, "smoke", *words, "--json", env=env)
        self.code, self.err = done.returncode, done.stderr
        assert done.stdout, done.stderr
        self.report = json.loads(done.stdout)

    @property
    def outcomes(self) -> dict[str, str]:
        """By test, or by environment and test if there are several runs."""
        runs = [run for package in self.report["packages"] for run in package["runs"]]
        return {
            f"{run['environment']} {test['test']}" if len(runs) > 1 else test["test"]: test[
                "outcome"
            ]
            for run in runs
            for test in run["tests"]
        }

    def test(self, name: str, environment: str = "clean") -> dict[str, str]:
        """The first run of a test in an environment."""
        return next(
            test
            for package in self.report["packages"]
            for run in package["runs"]
            if run["environment"] == environment
            for test in run["tests"]
            if test["test"] == name
        )


def write_tests(folder: Path, **bodies: str) -> Path:
    place = folder / "own"
    place.mkdir()
    for name, body in bodies.items():
        (place / f"{name}.py").write_text(HEAD + body, encoding="utf-8")
    return place


def quick(*words: object) -> Tried:
    return Tried(*words, "--installer", "uv", "--environment", "clean", env=OFFLINE)


# ------------------------------------------------------------------- small packages


def test_a_wheel_that_works_passes_by_both_installers(tmp_path: Path) -> None:
    tried = Tried(make_wheel(tmp_path), env=OFFLINE)
    assert tried.code == 0, tried.err
    assert set(tried.outcomes.values()) == {"passed"}
    (package,) = tried.report["packages"]
    assert [(run["installer"], run["environment"]) for run in package["runs"]] == [
        ("uv", "clean"),
        ("uv", "hostile"),
        ("pip", "clean"),
    ]
    names = [test["test"] for test in package["runs"][0]["tests"]]
    assert names == [
        "install",
        "requirements",
        "any/import.py",
        "any/libraries.py",
        "any/version.py",
    ]
    installed, *_, imported = package["runs"][-1]["tests"]
    assert "uv installed the same files, so only their import is tested" in installed["why"]
    assert imported["test"] == "any/import.py"
    validate(tried.report, "smoke")


def test_what_installers_write_otherwise_is_tried_with_each(tmp_path: Path) -> None:
    """Programs begin with the path of their interpreter."""
    program = {"demo_thing-1.0.data/scripts/demo": "#!python\nprint(1)\n"}
    tried = Tried(make_wheel(tmp_path, program), env=OFFLINE)
    assert tried.code == 0, tried.err
    (package,) = tried.report["packages"]
    assert [len(run["tests"]) for run in package["runs"]] == [5, 3, 5, 3]


def test_a_report_for_people(tmp_path: Path) -> None:
    own = write_tests(tmp_path, bad="raise ValueError('this is why')\n")
    words = (make_wheel(tmp_path), "--tests", own, "--installer", "uv")
    done = run(*TORCHYARD, "smoke", *words, env={**OFFLINE, "COLUMNS": "60"})
    assert done.returncode == SmokeError.exit_code
    assert max(map(len, done.stdout.splitlines())) <= 60
    assert "own/bad.py" in done.stdout
    assert "ValueError: this is why" in done.stdout.replace("\n", " ")
    assert "it does not work" in done.stdout
    assert "uv, clean: own/bad.py\n  failed: ValueError: this is why\n" in done.stderr
    assert "error: demo_thing-1.0-py3-none-any.whl does not work" in done.stderr


def test_a_version_that_is_another_is_found(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, {"demo_thing/__init__.py": '__version__ = "2.0"\n'})
    tried = quick(wheel)
    assert tried.code == SmokeError.exit_code
    assert tried.test("any/version.py")["why"].endswith("demo_thing.__version__ is 2.0, not 1.0")


def test_a_requirement_that_nobody_has_is_told(tmp_path: Path) -> None:
    tried = quick(make_wheel(tmp_path, requires="torchyard-no-such-thing"))
    assert tried.code == SmokeError.exit_code
    assert tried.outcomes == {"install": "failed"}
    assert "torchyard-no-such-thing" in tried.test("install")["output"]


def test_tests_are_alone(tmp_path: Path) -> None:
    own = write_tests(
        tmp_path,
        alone="""
import os, sys
assert not os.listdir(), os.listdir()
known = {"PATH", "HOME", "TMPDIR", "LANG", "LC_CTYPE", "PWD", "USER"}
others = {name for name in os.environ if not name.startswith("TORCHYARD_SMOKE_")} - known
assert not others, others
assert os.environ["TORCHYARD_SMOKE_NAME"] == "demo-thing"
assert os.environ["TORCHYARD_SMOKE_VERSION"] == "1.0"
assert os.path.dirname(__file__) not in sys.path
try:
    import torchyard
except ImportError:
    pass
else:
    raise AssertionError("torchyard can be imported")
""",
    )
    tried = quick(make_wheel(tmp_path), "--tests", own)
    assert tried.code == 0, tried.report


@needs_gcc
@needs_bwrap
def test_a_hostile_environment_is_hostile(tmp_path: Path) -> None:
    own = write_tests(
        tmp_path,
        libraries="import ctypes; ctypes.CDLL('libcudart.so.13').torchyard_is_no_such_library\n",
        libgomp="assert 'libgomp.so.1' in open('/proc/self/maps').read()\n",
        split="import demo_thing; assert '/lib64/' in demo_thing.__file__\n",
        home="""
import os, pathlib
assert "HOME" not in os.environ
try:
    (pathlib.Path.home() / ".cache").mkdir()
except NotADirectoryError:
    pass
else:
    raise AssertionError(f"there is a home at {pathlib.Path.home()}")
""",
        frozen="""
import demo_thing, os
try:
    open(os.path.join(os.path.dirname(demo_thing.__file__), "new"), "w")
except OSError as error:
    assert "Read-only" in str(error), error
else:
    raise AssertionError("it can be written to")
""",
        offline="""
import socket
interfaces = {name for _, name in socket.if_nameindex()}
assert interfaces == {"lo"}, interfaces
""",
    )
    words = ("--tests", own, "--installer", "uv", "--environment", "hostile")
    tried = Tried(make_wheel(tmp_path, version="1.0+cpu"), *words, env=OFFLINE)
    assert tried.code == 0, tried.report
    (only,) = tried.report["packages"][0]["runs"]
    assert set(only["applied"]) == CONDITIONS
    assert only["not_applied"] == {}


@needs_bwrap
def test_the_condition_that_breaks_a_package_is_named(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path,
        {"demo_thing/__init__.py": 'import os\n__version__ = "1.0+cpu"\nos.environ["HOME"]\n'},
        version="1.0+cpu",
    )
    tried = Tried(wheel, "--installer", "uv", env=OFFLINE)
    assert tried.code == SmokeError.exit_code
    assert tried.test("any/import.py", "clean")["outcome"] == "passed"
    failed = tried.test("any/import.py", "hostile")
    assert failed["why"] == "KeyError: 'HOME' (because of: no home)"


def test_hangs_and_crashes_are_told_with_their_places(tmp_path: Path) -> None:
    own = write_tests(
        tmp_path,
        hang="import time\ndef wait_for_ever(): time.sleep(600)\nwait_for_ever()\n",
        crash="import ctypes\ndef fall(): ctypes.string_at(0)\nfall()\n",
    )
    tried = quick(make_wheel(tmp_path), "--tests", own, "--timeout", "3")
    assert tried.code == SmokeError.exit_code
    hang, crash = tried.test("own/hang.py"), tried.test("own/crash.py")
    assert hang["outcome"] == "timed out"
    assert re.fullmatch(
        r"not done after 3 s; it used 0\.\d s of processor time, so it hangs", hang["why"]
    )
    assert "in wait_for_ever" in hang["output"]
    assert (crash["outcome"], crash["why"]) == ("crashed", "killed by SIGSEGV")
    assert "in fall" in crash["output"]


def test_known_failures_pass_and_expire(tmp_path: Path) -> None:
    own = write_tests(tmp_path, old="assert False\n", new="assert False\n", fixed="pass\n")
    rows = {"old": "2020-01-01", "new": "2999-01-01", "fixed": "2999-01-01"}
    text = "".join(
        f'[[known]]\ntest = "own/{name}.py"\nreason = "see #1"\nuntil = {until}\n'
        for name, until in rows.items()
    )
    (own / "known.toml").write_text(text, encoding="utf-8")
    tried = quick(make_wheel(tmp_path), "--tests", own)
    assert tried.code == SmokeError.exit_code
    outcomes = {name: tried.test(f"own/{name}.py")["outcome"] for name in rows}
    assert outcomes == {"old": "failed", "new": "known", "fixed": "passed"}
    assert tried.test("own/fixed.py")["why"].startswith("passes now: remove it")


def test_what_is_required_may_be_known_to_be_missing(tmp_path: Path) -> None:
    own = write_tests(tmp_path)
    row = '[[known]]\ntest = "install"\nreason = "see #1"\nuntil = 2999-01-01\n'
    (own / "known.toml").write_text(row, encoding="utf-8")
    tried = quick(make_wheel(tmp_path, requires="torchyard-no-such-thing"), "--tests", own)
    assert tried.code == 0, tried.report
    assert tried.outcomes == {"install": "known"}


def test_a_wheel_for_another_system_is_not_run_and_others_are(tmp_path: Path) -> None:
    other = make_wheel(tmp_path, tag="cp311-cp311-macosx_11_0_arm64")
    tried = quick(other, make_wheel(tmp_path))
    assert tried.code == 0, tried.report
    first, second = tried.report["packages"]
    assert (first["tried"], first["works"]) == (False, False)
    assert (second["tried"], second["works"]) == (True, True)
    (test,) = first["runs"][0]["tests"]
    assert (test["test"], test["outcome"]) == ("install", "not run")
    assert test["why"].startswith("it is for cp311-cp311-macosx_11_0_arm64, but this machine")


def test_a_zip_that_is_cut_off_does_not_keep_others_from_being_tried(tmp_path: Path) -> None:
    path = tmp_path / "libdemo-1.0.zip"
    path.write_bytes(b"PK")
    tried = quick(path, make_wheel(tmp_path))
    assert tried.code == SmokeError.exit_code
    assert [package["works"] for package in tried.report["packages"]] == [False, True]
    assert "can't be unpacked" in tried.report["packages"][0]["runs"][0]["tests"][0]["why"]


def test_if_nothing_can_be_tried_that_is_a_failure(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, tag="cp27-none-any")
    done = run(*TORCHYARD, "smoke", wheel)
    assert done.returncode == HostError.exit_code
    assert "nothing could be tried: 2 not run" in done.stdout
    assert f"{wheel.name} can't be tried here" in done.stderr


def test_after_an_import_that_hangs_no_other_test_is_run(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, {"demo_thing/__init__.py": "import time\ntime.sleep(600)\n"})
    own = write_tests(tmp_path, more="pass\n")
    tried = quick(wheel, "--timeout", "3", "--tests", own)
    assert tried.code == SmokeError.exit_code
    assert tried.test("any/import.py")["outcome"] == "timed out"
    for name in ("any/libraries.py", "any/version.py", "own/more.py"):
        test = tried.test(name)
        assert (test["outcome"], test["why"]) == ("not run", "importing it timed out")


def test_after_a_failed_import_the_run_ends(tmp_path: Path) -> None:
    """Neither other tests, nor other environments, nor another installer are tried."""
    wheel = make_wheel(tmp_path, {"demo_thing/__init__.py": "import none_such\n"})
    own = write_tests(tmp_path, more="pass\n")
    tried = Tried(wheel, "--tests", own, env=OFFLINE)
    assert tried.code == SmokeError.exit_code
    assert tried.test("any/import.py")["outcome"] == "failed"
    assert tried.test("own/more.py")["why"] == "importing it failed"
    (clean,) = (run["tests"] for run in tried.report["packages"][0]["runs"])
    assert [test["outcome"] for test in clean[3:]] == ["not run"] * 3
    *_, counted, why, last = tried.err.splitlines()[:-2]
    assert counted == "[1/8 tests] uv, clean: any/import.py"
    assert why.startswith("  failed: ModuleNotFoundError: No module named 'none_such'")
    assert last == "  nothing else is tried: importing it failed"


def test_a_python_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = run(*TORCHYARD, "smoke", make_wheel(tmp_path), "--interpreter", tmp_path / "none")
    assert done.returncode == UsageError.exit_code
    assert "none' does not exist" in done.stderr


def test_a_zip_that_is_only_unpacked_is_not_said_to_work(tmp_path: Path) -> None:
    path = tmp_path / "libdemo-1.0.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("libdemo/lib/readme", "")
    done = run(*TORCHYARD, "smoke", path)
    assert done.returncode == 0, done.stderr
    assert "it can be unpacked, and nothing else was tried: 1 passed" in done.stdout


def test_what_can_not_be_run_is_told(tmp_path: Path) -> None:
    own = write_tests(
        tmp_path, gpu="# needs: gpu\nassert False\n", numpy="# needs: numpy\nassert False\n"
    )
    wheel = make_wheel(tmp_path, version="1.0+cpu")
    words = ("--tests", own, "--installer", "uv")
    tried = Tried(wheel, *words, env={**OFFLINE, "UV_CACHE_DIR": str(tmp_path / "cache")})
    assert tried.code == 0
    for environment in ("clean", "hostile"):
        gpu = tried.test("own/gpu.py", environment)
        numpy = tried.test("own/numpy.py", environment)
        assert (gpu["outcome"], gpu["why"]) == ("not run", "it is for no GPU")
        assert numpy["outcome"] == "not run"
        assert numpy["why"].startswith("numpy can't be installed: ")


RECIPE = """\
package: {name: demo, version: "1.0"}
build: {script: "mkdir -p $PREFIX/share && echo hi > $PREFIX/share/hi"}
about: {license: MIT}
tests:
  - script: ["test -f $PREFIX/share/hi", "test -f $PREFIX/share/needed"]
    requirements: {run: [needed]}
  - script: ["false", "true"]
  - package_contents: {files: [share/hi]}
"""


def test_the_tests_of_a_conda_recipe_are_run(tmp_path: Path) -> None:
    """A package that rattler-build made, whose first test needs another package."""
    recipe = Path(tmp_path, "recipe/recipe.yaml")
    recipe.parent.mkdir()
    recipe.write_text(RECIPE, encoding="utf-8")
    made = Stage0Recipe.from_file(recipe).run_build(output_dir=tmp_path / "made", channels=[])
    tree = tmp_path / "tree"
    (tree / "share").mkdir(parents=True)
    (tree / "share/needed").touch()
    channel = tmp_path / "channel"
    make_package(channel / SUBDIR, "needed", "1.0", "0", tree)
    index(channel)
    package = made[0].packages[0]
    tried = Tried(package, "--conda-channel", channel, "--environment", "clean")
    assert tried.code != 0
    assert tried.outcomes["recipe/script-0.sh"] == "passed"
    assert tried.outcomes["recipe/script-1.sh"] == "failed", "a script stops where a line fails"


@needs_gcc
def test_a_library_of_the_system_that_not_every_system_has_is_found(tmp_path: Path) -> None:
    """As when a package forgets to bring its libgomp, on a machine that has one."""
    library = compile_stub(tmp_path, "libdemo_foreign.so", "int demo;\n")
    code = f'__version__ = "1.0"\nimport ctypes\nctypes.CDLL("{library}")\n'
    tried = quick(make_wheel(tmp_path, {"demo_thing/__init__.py": code}))
    why = tried.test("any/libraries.py")["why"]
    assert why == f"neither in this environment nor in every system: {library}"


@needs_gcc
def test_what_a_driver_needs_is_no_matter_of_the_package(tmp_path: Path) -> None:
    """As when the system's HIP brings libdrm and libnuma."""
    other = compile_stub(tmp_path, "libdemo_foreign.so", "int demo;\n")
    needs = ("-Wl,--no-as-needed", f"-Wl,-rpath,{tmp_path}", str(other))
    driver = compile_stub(tmp_path, "libamdhip64.so.5", "int hip;\n", *needs)
    code = '__version__ = "{}"\nimport ctypes\nctypes.CDLL("{}")\n'
    told = {}
    for version in ("1.0+rocm5.2", "1.0+cpu"):
        files = {"demo_thing/__init__.py": code.format(version, driver)}
        tried = quick(make_wheel(tmp_path, files, version=version))
        told[version] = tried.test("any/libraries.py").get("why")
    missing = f"neither in this environment nor in every system: {driver}, {other}"
    assert told == {"1.0+rocm5.2": "", "1.0+cpu": missing}


@needs_gcc
@pytest.mark.parametrize("loads", ["torch", "PIL"])
@pytest.mark.parametrize("is_own", [False, True])
def test_what_another_package_loads_is_no_matter_of_an_extension(
    tmp_path: Path, loads: str, *, is_own: bool
) -> None:
    """As when torch takes the CUDA of the system, or Pillow its FriBiDi."""
    library = compile_stub(tmp_path, "libdemo_foreign.so", "int demo;\n")
    site = tmp_path / "site"
    site.mkdir()
    (site / f"{loads}.py").write_text(f'import ctypes\nctypes.CDLL("{library}")\n')
    (site / "demo.py").write_text(f"import {loads}\n")
    modules = loads if is_own else "demo"
    env = {"PYTHONPATH": str(site), "TORCHYARD_SMOKE_SYSTEM": ""}
    test = str(ROOT / "src/torchyard/data/smoke/any/libraries.py")
    done = subprocess.run(
        [sys.executable, test],
        env=env | {"TORCHYARD_SMOKE_MODULES": modules, "TORCHYARD_SMOKE_OWN": modules},
        check=False,
        capture_output=True,
    )
    assert done.returncode == is_own, done.stderr


@needs_gcc
@pytest.mark.parametrize("has_link", [False, True])
def test_a_driver_is_known_by_the_link_to_its_library(tmp_path: Path, *, has_link: bool) -> None:
    """As libcuda.so.1 is one to libcuda.so.550.163.01, whose path a process sees."""
    library = compile_stub(tmp_path, "libdemo_driver.so.550.163.01", "int demo;\n")
    if has_link:
        (library.parent / "libdemo_driver.so.1").symlink_to(library.name)
    site = tmp_path / "site"
    site.mkdir()
    (site / "demo.py").write_text(f'import ctypes\nctypes.CDLL("{library}")\n')
    test = str(ROOT / "src/torchyard/data/smoke/any/libraries.py")
    env = {"TORCHYARD_SMOKE_MODULES": "demo", "TORCHYARD_SMOKE_OWN": "demo"}
    env |= {"PYTHONPATH": str(site), "TORCHYARD_SMOKE_SYSTEM": "libdemo_driver.so.1"}
    done = subprocess.run([sys.executable, test], env=env, check=False, capture_output=True)
    assert done.returncode == (not has_link), done.stderr


# ------------------------------------------------------------------------ tinytorch


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each kind of package for cpu, and a channel with what conda's need."""
    if not all(map(shutil.which, ("gcc", "bwrap"))) or find_python("cp311") is None:
        pytest.skip("there is no gcc, no bwrap or no Python 3.11 here")
    folder = tmp_path_factory.mktemp("tinytorch")
    cells = ("cp311/wheel", "cp311/conda", "any/conda-libtorch", "any/conda-meta", "any/libtorch")
    with shared_sample(tmp_path_factory) as project:
        jobs = [f"package:{PREFIX}/cpu-openblas/{cell}" for cell in cells]
        project.torchyard("build", *jobs, "-o", folder / "packages")
    make_channel(folder / "channel", ["cp311"])
    return folder


@slow
def test_all_packages_of_the_sample_work(packages: Path) -> None:
    tried = Tried(
        *sorted((packages / "packages").iterdir()),
        *("--level", "full", "--tests", SAMPLE / "smoke"),
        *("--conda-channel", (packages / "channel").as_uri()),
    )
    assert tried.code == 0, tried.report
    runs = [run for package in tried.report["packages"] for run in package["runs"]]
    assert {run["installer"] for run in runs} == {"pip", "uv", "conda", "unzip"}
    for each in runs:
        outcomes = {test["test"]: test["outcome"] for test in each["tests"]}
        assert outcomes["smoke/consumer.cpp"] == "passed"
        assert outcomes["smoke/gpu.py"] == "not run"
        assert outcomes["smoke/core.py"] == ("passed" if each["python"] else "not run")


@slow
def test_a_conda_package_without_its_channel_is_told(packages: Path) -> None:
    (package,) = (packages / "packages").glob("tinytorch-1.2.0-*_py311_*.conda")
    tried = Tried(package)
    assert tried.code == SmokeError.exit_code
    failed = tried.test("install")
    assert "for which no candidates were found" in failed["why"]
    assert failed["why"].endswith("; name channels with its requirements by --conda-channel")


# ---------------------------------------------------------------------------- torch


@slow
@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_torch_works_in_clean_and_hostile_environments(torch_wheel: Path, installer: str) -> None:
    tried = Tried(torch_wheel, "--level", "full", "--installer", installer)
    assert tried.code == 0, tried.report
    (package,) = tried.report["packages"]
    for each in package["runs"]:
        outcomes = {test["test"]: test["outcome"] for test in each["tests"]}
        assert outcomes.pop("torch/gpu.py") == "not run"
        assert set(outcomes.values()) == {"passed"}
        assert "torch/compile.py" in outcomes
    hostile = package["runs"][1]
    assert set(hostile["applied"]) == CONDITIONS
    numpy = {test["variant"] for test in hostile["tests"] if test["variant"]}
    assert len(numpy) == 2


def sabotaged(wheel: Path, folder: Path, changes: Mapping[str, Path | None]) -> Tried:
    made = change_wheel(wheel, folder, changes)
    words = ("--level", "import", "--installer", "uv", "--environment", "clean")
    tried = Tried(made, *words)
    assert tried.code == SmokeError.exit_code
    return tried


@slow
def test_torch_without_its_libgomp_fails(torch_wheel: Path, tmp_path: Path) -> None:
    """This machine may have one of its own: that is no help to others."""
    tried = sabotaged(torch_wheel, tmp_path, {"torch/lib/libgomp.so.1": None})
    assert "libgomp.so.1" in tried.test("any/libraries.py")["why"]


@slow
def test_torch_with_a_wrong_rpath_fails(torch_wheel: Path, tmp_path: Path) -> None:
    member = "torch/lib/libtorch_python.so"
    library = extract(torch_wheel, member, tmp_path / "out")
    subprocess.run(["patchelf", "--set-rpath", "$ORIGIN/../libs", str(library)], check=True)
    tried = sabotaged(torch_wheel, tmp_path, {member: library})
    why = tried.test("any/import.py")["why"]
    assert "cannot open shared object file" in why


@slow
@needs_gcc
def test_torch_with_a_library_of_the_old_abi_fails(torch_wheel: Path, tmp_path: Path) -> None:
    code = "#include <string>\nnamespace c10 { std::string name(std::string s) { return s; } }\n"
    stub = compile_stub(tmp_path, "libc10.so", code, "-D_GLIBCXX_USE_CXX11_ABI=0")
    tried = sabotaged(torch_wheel, tmp_path, {"torch/lib/libc10.so": stub})
    why = tried.test("any/import.py")["why"]
    assert "undefined symbol" in why
