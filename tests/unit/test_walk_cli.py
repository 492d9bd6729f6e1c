"""What a new command or engine costs: which files have to know of it."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.helpers import ROOT, make_project

from torchyard.version import ON_PYPI

SOURCE = ROOT / "src/torchyard"
FEATURES = "torchyard.features"

COMMAND = '''
"""`torchyard dig`: a command that is only this file."""
import click
@click.command("dig")
def command() -> None:
    "Dig a hole."
    click.echo("dug")
'''
ENGINE = """
from typing import Annotated
import msgspec
from torchyard.model.build_result import BuildResult
from torchyard.model.event import Noted
class Digger(msgspec.Struct):
    depth: Annotated[int, msgspec.Meta(ge=1, description="How deep to dig.")] = 1
    def build(self, plan, store, context, on_event):
        on_event(Noted(text=f"digs {self.depth} m for {plan.label}"))
        return BuildResult(plan.label, [], [], "")
"""


def imports(path: Path) -> set[str]:
    """All modules that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def run(*args: str) -> str:
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout


def test_a_command_is_one_folder(tmp_path: Path) -> None:
    """Nothing else names it."""
    folder = tmp_path / "dig"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "command.py").write_text(COMMAND, encoding="utf-8")
    code = f"import {FEATURES} as room; room.__path__.append({str(tmp_path)!r}); "
    code += "from torchyard.cli.main import main; main()"
    assert run(sys.executable, "-c", code, "dig") == "dug\n"
    assert re.search(
        r"^  dig +Dig a hole\.$", run(sys.executable, "-c", code, "--help"), re.MULTILINE
    )


def test_only_features_name_features() -> None:
    """But for the Python API, which calls use cases."""
    for path in SOURCE.rglob("*.py"):
        used = {name for name in imports(path) if name.startswith(f"{FEATURES}.")}
        assert not used or (SOURCE / "features") in path.parents or path.parent == SOURCE, path


def test_the_plug_in_uses_only_options_groups_and_displays_of_the_command_line() -> None:
    rooms = ("options", "lazy_group", "build_display", "output")
    shared = tuple(f"torchyard.cli.{name}." for name in rooms)
    for path in (ROOT / "farm/src").rglob("*.py"):
        used = {name for name in imports(path) if f"{name}.".startswith("torchyard.cli.")}
        assert all(name.startswith(shared) for name in used), path


def test_an_engine_is_one_module(tmp_path: Path) -> None:
    (tmp_path / "dig.py").write_text(f"{ENGINE}\nengine = Digger\n", encoding="utf-8")
    file = make_project(tmp_path / "project")
    code = f"import torchyard.engines.builtin as room; room.__path__.append({str(tmp_path)!r}); "
    code += "from torchyard.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, "build", "-f", str(file), "--engine", "dig", "--depth", "2"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert ended.stderr == "note     digs 2 m for demo-1.0\n"


def test_an_engine_of_a_plug_in_brings_its_options(tmp_path: Path) -> None:
    metadata = tmp_path / "digger-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: digger\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(
        "[torchyard.engines]\ndig = digger:Digger\n", encoding="utf-8"
    )
    (tmp_path / "digger.py").write_text(ENGINE, encoding="utf-8")
    file = make_project(tmp_path / "project")
    code = f"import sys; sys.path.append({str(tmp_path)!r}); "
    code += "from torchyard.cli.main import main; main()"
    build = (sys.executable, "-c", code, "build", "-f", str(file))
    ended = subprocess.run(
        [*build, "--engine", "dig", "--depth", "3"], check=True, capture_output=True, text=True
    )
    assert ended.stderr == "note     digs 3 m for demo-1.0\n"
    assert "Options of --engine dig:\n  --depth INTEGER RANGE  How deep to dig." in run(
        *build, "--help"
    )
    for words, said in (
        (("--depth", "3"), "`--depth` is for the dig engine"),
        (("--engine", "dig", "--slots", "3"), "`--slots` is for the local engine"),
        (("--engine", "dig", "--depth", "0"), "0 is not in the range"),
    ):
        refused = subprocess.run([*build, *words], check=False, capture_output=True, text=True)
        assert refused.returncode == 2
        assert said in refused.stderr


def test_no_engine_of_a_plug_in_is_named_outside_of_data() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"buildbot|\bfarm", text, re.IGNORECASE) == [], path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("build", "--engine", "buildbot"), "there is no engine `buildbot`"),
        (("farm", "init"), "has no command `farm`"),
    ],
)
def test_a_plug_in_that_is_not_installed_is_named(words: tuple[str, ...], said: str) -> None:
    code = "import torchyard.host.entry_points as points; points.entry_points_in = lambda _: {}; "
    code += "from torchyard.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, *words], check=False, capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert said in ended.stderr
    wanted = "`pip install torchyard-farm`" if ON_PYPI else "`pip install ./farm`"
    assert "install torchyard-farm: " in ended.stderr
    assert wanted in ended.stderr


COUNTED = """
import os, sys, traceback
import torchyard.host.child as child, torchyard.host.fork_server as fork_server
def counting(before):
    def counted(self, *args, **options):
        frames = traceback.extract_stack()
        names = [frame.name for frame in frames if "/torchyard/" in frame.filename]
        with open(os.environ["COUNTED"], "a") as file:
            file.write(" ".join(names) + "\\n")
        return before(self, *args, **options)
    return counted
child.Child.__init__ = counting(child.Child.__init__)
fork_server.Pool.begin = counting(fork_server.Pool.begin)
"""


def test_a_few_calls_lead_from_the_command_to_the_compiler_s_process(tmp_path: Path) -> None:
    """Helpers within a module count, too, and what starts both processes."""
    (tmp_path / "sitecustomize.py").write_text(COUNTED, encoding="utf-8")
    file, calls = make_project(tmp_path / "project"), tmp_path / "calls"
    argv = [sys.executable, "-m", "torchyard", "build", "source:*", "-f", str(file)]
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "COUNTED": str(calls)}
    subprocess.run(argv, env=env, check=True, capture_output=True)
    build, job = (line.split() for line in calls.read_text(encoding="utf-8").splitlines())
    shown = ["command", "command", "show_build", "build", "run", "_start_jobs", "_start"]
    assert build[2:] == shown
    assert job[4:] == ["command", "_call", "run_one_job", "run_job", "_build", "run_steps", "_run"]


def test_no_hint_installs_what_is_not_on_pypi() -> None:
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "farm/src").rglob("*.py")]
    named = [path.name for path in sources if "pip install torchyard" in path.read_text("utf-8")]
    assert named == []
