"""Jobs do not find the toolkits of platforms that they do not compile for.

The toolkit of CUDA is played by `cmp` and `/usr/local/share`, which every machine has.
"""

import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.hostile_steps import spec_of

from torchyard.compute.cuda.table import cuda_table
from torchyard.compute.registry import platform_for
from torchyard.compute.table import MachineRules
from torchyard.model.config import SandboxKind
from torchyard.model.job_spec import JobSpec
from torchyard.model.step import SHELL, Step
from torchyard.run.conditions import Conditions, enclosure_of
from torchyard.run.sandbox import enclose
from torchyard.run.steps import StepContext
from torchyard.run.workdir import WorkDir
from torchyard.store.store import Store

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")

LOOK = """\
command -v cmp || echo no cmp
python3 -c 'import subprocess; subprocess.call(["cmp", "--version"])' 2>&1 | tail -n 1 || true
ls -d /usr/local/share 2>&1 || true
touch /usr/local/file 2>&1 || true
ls /usr/local
diff --version | head -n 1
"""


@pytest.fixture(autouse=True)
def toolkit(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = MachineRules(roots=("usr/local/sha[r]e",), programs=("cmp",))
    table = cuda_table()._replace(machine=rules)
    monkeypatch.setattr(type(platform_for("cu130")), "table", lambda _self: table)


def look(folder: Path, compute: str, kind: SandboxKind) -> list[str]:
    """Return the lines of a step that looks for the toolkit, in a job that compiles."""
    step = Step(run=(*SHELL, LOOK), cwd="/")
    scope = f"linux-x86_64/{compute}-openblas"
    task = replace(spec_of().task, id=f"core:demo-1.0/{scope}", scope=scope, settings={})
    workdir = WorkDir(folder / "work", JobSpec(tasks=(task,)))
    workdir.prepare(kind)
    conditions = Conditions(folder / "work", "/none.toml", foreign=True)
    enclosure = enclosure_of(kind, workdir, conditions, {}, Store.at(str(folder / "store")))
    env = StepContext(workdir, enclosure, None, "/none.toml").environment()
    argv = enclose(enclosure, step, workdir, None)
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("kind", ["bwrap", "view"])
def test_a_job_for_cpus_finds_no_toolkit(tmp_path: Path, kind: SandboxKind) -> None:
    there = sorted(path.name for path in Path("/usr/local").iterdir())
    command, called, place, refused, *listed, other = look(tmp_path, "cpu", kind)
    assert command == "no cmp"
    assert called.startswith("FileNotFoundError"), "projects catch no other error"
    assert "No such file or directory" in place
    assert "Read-only file system" in refused
    assert [*listed, "share"] == [*(name for name in there if name != "share"), "share"]
    assert "diff" in other, "what is beside the program is still there"


def test_a_job_of_the_platform_itself_finds_it(tmp_path: Path) -> None:
    command, called, place, *_ = look(tmp_path, "cu130", "bwrap")
    assert command.endswith("/cmp")
    assert not called.startswith("FileNotFoundError")
    assert place == "/usr/local/share"


def test_toolkits_are_looked_for_in_the_system_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "usr/local/cuda-13.0/bin").mkdir(parents=True)
    (tmp_path / "usr/local/cuda").symlink_to("cuda-13.0")
    rules = MachineRules(roots=("usr/local/cuda*", "opt/cuda*"))
    assert rules.toolkit_paths(str(tmp_path)) == ["/usr/local/cuda", "/usr/local/cuda-13.0"]
