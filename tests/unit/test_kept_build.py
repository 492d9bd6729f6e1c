"""After an edit, a build of an extension's checkout begins with the objects of the last one.

ninja is real; the compiler is played by `cat`, and its dependency file by `echo`.
"""

import os
import re
import shutil
import time
from pathlib import Path

import pytest
from tests.unit.test_extension import CELL, plan_with, spec_in

from torchyard.config.load import load_config
from torchyard.errors import BuildError
from torchyard.host.process import capture
from torchyard.model.config import Sandbox
from torchyard.model.recipe import Stage
from torchyard.model.result import Result
from torchyard.plan.build import make_plan
from torchyard.plan.job_specs import make_job_spec
from torchyard.plan.select import EVERYTHING
from torchyard.recipes import steps_of
from torchyard.run.conditions import Conditions
from torchyard.run.job import run_job
from torchyard.run.rebuild import _copy_source
from torchyard.store.store import Store
from torchyard.store.trees import fetch_file, read_result_log
from torchyard.toolchain.ninja import read_deps

pytestmark = [
    pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed"),
    pytest.mark.skipif(not shutil.which("ninja"), reason="there is no ninja"),
]

NINJA = """\
rule compile
  command = cat $in common.h > $out && test ! -s broken && echo "$out: $in common.h" > $out.d
  depfile = $out.d
  deps = gcc
build made/one.o: compile one.c
build made/two.o: compile two.c
build made/three.o: compile three.c
"""
PROJECT = f"""\
[project]
name = "ext"
version = "1.0"
recipe = "extension"

[source]
path = "code"

[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
torch = ["torch2.13"]
python = ["cp311"]
package = ["wheel"]

[[steps.bindings]]
run = '''
{steps_of(spec_in(plan_with(), Stage.BINDINGS, CELL))[0].run[-1]}
'''

[[steps.bindings]]
run = '''
ninja -j1
cp made/*.o {{out}}
'''

[steps]
package = []
check = []
smoke = []
"""


ANY = Sandbox()


class Project:
    """A checkout that is built again and again."""

    def __init__(self, folder: Path) -> None:
        self.code = folder / "code"
        self.file = folder / "torchyard.toml"
        self.result: Result
        self.code.mkdir()
        self.file.write_text(PROJECT, encoding="utf-8")
        texts = {"build.ninja": NINJA, "common.h": "common\n", "broken": ""}
        for name, text in (texts | {f"{n}.c": f"{n}\n" for n in ("one", "two", "three")}).items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        (self.code / name).write_text(text, encoding="utf-8")

    def link(self, name: str, target: str) -> None:
        (self.code / name).unlink()
        (self.code / name).symlink_to(target)

    def before_ninja(self, line: str) -> None:
        """Let the build run a line of shell first."""
        text = self.file.read_text(encoding="utf-8")
        self.file.write_text(text.replace("ninja -j1", f"{line}\nninja -j1"), encoding="utf-8")

    def build(self, store: str = "store", sandbox: Sandbox = ANY) -> list[str]:
        """Build, and return the objects that were compiled."""
        plan = make_plan(load_config(str(self.file)), EVERYTHING)
        spec = make_job_spec(plan, plan.find(Stage.BINDINGS, CELL))
        conditions = Conditions(self.file.parent / "work", str(self.file), sandbox=sandbox)
        self.store = Store.at(str(self.file.parent / store))
        _copy_source(spec.of(spec.tasks[0]), self.store, conditions)
        self.result = run_job(spec, self.store, conditions, lambda _: None).result
        log = b"".join(read_result_log(self.store, self.result)).decode()
        return sorted(re.findall(r"\] cat .* > made/(\w+)\.o", log))

    def made(self, name: str) -> str:
        """Return an object of the last build."""
        (file,) = (file for file in self.result.tree.files if file.path == f"{name}.o")
        fetch_file(self.store, file, self.file.with_name("made"))
        return self.file.with_name("made").read_text(encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


ALL = ["one", "three", "two"]


def test_what_was_edited_is_compiled_and_nothing_else(project: Project) -> None:
    assert project.build() == ALL
    project.write("two.c", "second\n")
    assert project.build() == ["two"]
    assert project.made("two") == "second\ncommon\n"
    project.write("two.c", "two\n")  # as it was at first, and older than its object
    project.write("three.c", "third\n")
    assert project.build() == ["three", "two"]
    assert project.made("two") == "two\ncommon\n"


def test_what_includes_an_edited_header_is_compiled(project: Project) -> None:
    project.build()
    project.write("common.h", "shared\n")
    assert project.build() == ALL
    assert project.made("one") == "one\nshared\n"


def test_a_failed_build_keeps_what_it_compiled(project: Project) -> None:
    project.build()
    project.write("three.c", "third\n")
    project.write("broken", "yes\n")
    with pytest.raises(BuildError):
        project.build()
    project.write("broken", "")
    project.write("two.c", "second\n")
    assert project.build() == ["three", "two"]
    assert (project.made("two"), project.made("three")) == ("second\ncommon\n", "third\ncommon\n")


def test_a_new_file_may_be_found_before_others_so_all_is_compiled(project: Project) -> None:
    project.build()
    project.write("new.h", "new\n")
    assert project.build() == ALL


def test_other_settings_and_another_store_begin_from_nothing(project: Project) -> None:
    project.build()
    assert project.build("other") == ALL
    text = '\n[[override]]\nstage = "bindings"\nenv = { LEVEL = "2" }\n'
    with project.file.open("a", encoding="utf-8") as file:
        file.write(text)
    assert project.build() == ALL


def test_objects_in_the_source_are_the_sources(project: Project) -> None:
    (project.code / "made").mkdir()
    project.write("made/given.o", "first\n")
    project.build()
    project.write("made/given.o", "later\n")
    project.build()
    assert project.made("given") == "later\n"


def test_a_link_that_leads_elsewhere_is_no_old_header(project: Project) -> None:
    project.write("a.h", "a\n")
    project.write("b.h", "b\n")
    project.link("common.h", "a.h")
    project.build()
    project.link("common.h", "b.h")
    project.build()
    assert project.made("one") == "one\nb\n"


def test_an_object_of_which_ninja_knows_no_headers_is_compiled(project: Project) -> None:
    rule = "rule blind\n  command = cat $in common.h > $out\nbuild made/four.o: blind one.c\n"
    project.write("build.ninja", NINJA + rule)
    project.build()
    project.write("common.h", "shared\n")
    project.build()
    assert project.made("four") == "one\nshared\n"


@pytest.mark.parametrize("header", ["common.h", "copied.h"])
def test_a_header_that_the_build_copies_with_its_time_is_new(project: Project, header: str) -> None:
    project.write("build.ninja", NINJA.replace("common.h", header))
    project.before_ninja(f"cp -p $(cat choice).h {header}")
    for name, text in {"a.h": "a\n", "b.h": "b\n", "choice": "a"}.items():
        project.write(name, text)
    project.build()
    project.write("choice", "b")
    project.build()
    assert project.made("one") == "one\nb\n"


def test_a_clock_that_was_ahead_hides_no_edit(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.build()
    project.write("two.c", "second\n")
    monkeypatch.setattr(time, "time_ns", lambda: 10**18)  # in 2001
    assert project.build() == ["two"]
    assert project.made("two") == "second\ncommon\n"


def test_a_header_of_the_system_that_was_replaced_by_an_older_one_is_new(project: Project) -> None:
    header = project.file.with_name("system.h")
    sandbox = Sandbox(readable=(str(header),))
    header.write_text("4.1\n", encoding="utf-8")
    project.write("build.ninja", NINJA.replace("common.h", str(header)))
    project.build(sandbox=sandbox)
    project.write("two.c", "second\n")
    assert project.build(sandbox=sandbox) == ["two"]
    header.write_text("4.2\n", encoding="utf-8")
    os.utime(header, (1, 1))  # as package managers do
    project.write("two.c", "third\n")
    assert project.build(sandbox=sandbox) == ALL
    assert project.made("one") == "one\n4.2\n"


def test_another_script_can_set_variables_that_no_command_shows(project: Project) -> None:
    project.write("setup.py", "2")
    project.build()
    project.write("setup.py", "3")
    assert project.build() == ALL


def test_objects_of_a_build_without_a_sandbox_do_not_become_those_of_one(project: Project) -> None:
    project.build(sandbox=Sandbox(kind="view"))
    project.write("two.c", "second\n")
    assert project.build(sandbox=Sandbox(kind="bwrap")) == ALL
    assert project.store.is_confined(project.result)


def test_a_result_that_began_with_objects_is_not_one_of_a_sandbox_alone(project: Project) -> None:
    """A branch that was built before can have planted what the next build links."""
    project.write("evil", "yes")
    text = project.file.read_text(encoding="utf-8")
    plant = "touch -r made/one.o time\n[ ! -s evil ] || echo planted > made/one.o\n"
    plant += "touch -r time made/one.o\ncp made"
    project.file.write_text(text.replace("cp made", plant), encoding="utf-8")
    project.build()
    assert project.store.is_confined(project.result)
    project.write("evil", "")
    project.build()
    assert project.made("one") == "planted\n"
    assert not project.store.is_confined(project.result)


def test_what_objects_include_is_what_ninja_says(tmp_path: Path) -> None:
    for name in ("one.c", "two.c", "three.c", "common.h", "broken"):
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "build.ninja").write_text(NINJA, encoding="utf-8")
    capture(["ninja"], cwd=tmp_path)
    data = (tmp_path / ".ninja_deps").read_bytes()
    assert read_deps(data) == {f"made/{n}.o": [f"{n}.c", "common.h"] for n in ALL}
    cut = [read_deps(data[:size]) for size in range(len(data))]
    assert all(found.items() <= read_deps(data).items() for found in cut)
    assert read_deps(data.replace(b"\4", b"\3", 1)) == {}
