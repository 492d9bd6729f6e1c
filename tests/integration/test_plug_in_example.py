"""`examples/plug-in`, installed and used: a compute platform, a recipe, a rule and an engine."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.support.helpers import ROOT

pytestmark = pytest.mark.integration

HERE = f"cp{sys.version_info.major}{sys.version_info.minor}"
FILE = f"""\
[project]
name = "counting"
version = "1.0"
recipe = "pure"

[source]
path = "src"

[matrix]
platform = ["linux-x86_64"]
compute = ["abacus1"]
torch = ["torch2.14"]
python = ["{HERE}"]
package = ["wheel"]

[steps]
smoke = []
"""


class Environment:
    """A Python environment with torchyard and the example, and a project that uses both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "env/bin/python"
        uv = str(Path(sysconfig.get_path("scripts"), "uv"))
        made = [uv, "venv", "--quiet", "--offline", "--python", sys.executable, str(folder / "env")]
        subprocess.run(made, check=True)
        (site,) = (folder / "env").glob("lib/python3*/site-packages")
        parent = sysconfig.get_path("purelib")
        (site / "parent.pth").write_text(f"import site; site.addsitedir({parent!r})\n", "utf-8")
        install = [uv, "pip", "install", "--quiet", "--offline", "--python", str(self.python)]
        install += ["--no-deps", "--no-build-isolation", str(ROOT / "examples/plug-in")]
        subprocess.run(install, check=True)
        (folder / "project/src").mkdir(parents=True)
        (folder / "project/src/counting.py").write_text("ONE = 1\n", "utf-8")
        (folder / "project/torchyard.toml").write_text(FILE, "utf-8")

    def run(self, *args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self.python, "-m", "torchyard", *args],
            cwd=self.folder / "project",
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("plug-in"))


def test_a_plan_has_the_compute_platform_and_the_recipe(environment: Environment) -> None:
    document = json.loads(environment.run("plan", "--json").stdout)
    stages = [job["stage"] for job in document["jobs"]]
    assert sorted(stages) == ["bindings", "check", "package", "smoke", "source"]
    block = "counting-1.0/linux-x86_64/abacus1-torch2.14"
    explained = environment.run("explain", f"bindings:{block}/{HERE}").stdout
    assert "torchyard_abacus/abacus.toml" in explained
    assert "bead10" in explained


def test_the_engine_builds_with_the_recipe_and_the_rule_checks(environment: Environment) -> None:
    built = environment.run("build", "--engine", "in-order", "--greeting", "click")
    assert "click: 5 jobs" in built.stderr
    result = json.loads(environment.run("store", "ls", "--json").stdout)
    assert len(result["results"]) == 5
    environment.run("store", "get", "package:*", "-o", "dist")
    (wheel,) = (environment.folder / "project/dist").rglob("*.whl")
    assert "+abacus1-" in wheel.name
    checked = json.loads(environment.run("check", "--json", str(wheel)).stdout)
    found = {finding["rule"] for finding in checked["packages"][0]["findings"]}
    assert "abacus-beads" in found
    assert "has no beads" in environment.run("explain", "rule", "abacus-beads").stdout


def test_which_has_an_option_for_the_platform(environment: Environment) -> None:
    assert "--abacus V" in environment.run("which", "--help").stdout
