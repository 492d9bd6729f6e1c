"""Extensions that turn ninja off are compiled in parallel, on the slots of a jobserver."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from torchyard.host.jobserver import Jobserver, makeflags
from torchyard.toolchain.python_project import BuildSystem, build_wheel_program

SETUPTOOLS = BuildSystem(backend="setuptools.build_meta:__legacy__")

COMPILER = """#!/bin/sh
case " $* " in *" -c "*) ;; *) exec cc "$@" ;; esac
echo "begin ${0##*/} $*" >> commands
until [ $(grep -c ^begin commands) -ge $(cat together) ]; do sleep 0.02; done
case "$*" in
*slow.c*) until [ $(grep -c ^end commands) -ge 2 ]; do sleep 0.02; done; sleep 0.3 ;;
esac
cc "$@"; status=$?
echo "end" >> commands
exit $status
"""
"""A compiler that notes its commands, and does not end before as many as `together` have begun.

`slow.c` is compiled after two others."""

TWO_MODULES = """
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext as Build
Build.use_ninja = False  # as in torch's
modules = [Extension(name, [f"{name}.c", f"{name}_more.c"]) for name in ("one", "two")]
setup(name="both", version="1", ext_modules=modules)
"""

AS_TORCH = """
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

class Build(build_ext):
    use_ninja = False
    def build_extensions(self):
        original_compile = self.compiler._compile
        def compile(obj, src, *args):
            usual = self.compiler.compiler_so
            try:
                if src.endswith("_more.c"):
                    self.compiler.set_executable("compiler_so", ["./other"])
                original_compile(obj, src, *args)
            finally:
                self.compiler.set_executable("compiler_so", usual)
        self.compiler._compile = compile
        build_ext.build_extensions(self)

modules = [Extension(name, [f"{name}.c", f"{name}_more.c"]) for name in ("one", "two")]
setup(name="both", version="1", ext_modules=modules, cmdclass={"build_ext": Build})
"""

SAME_FILE = """
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext as Build
Build.use_ninja = False  # as in torch's
def module(name, path, value): return Extension(name, [path], define_macros=[("VALUE", value)])
modules = [module("one", "below/../one.c", "1"), module("two", "one.c", "2")]
setup(name="both", version="1", ext_modules=modules)
"""

ONE_IS_OPTIONAL = """
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext as Build
Build.use_ninja = False  # as in torch's
modules = [Extension("one", ["one.c"]), Extension("two", ["wrong.c"], optional=True)]
setup(name="both", version="1", ext_modules=modules)
"""

USED_WHEN_LINKED = """
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

class Build(build_ext):
    use_ninja = False
    def build_extension(self, ext):
        super().build_extension(ext)
        open(self.get_ext_fullpath(ext.name)).close()

modules = [Extension("one", ["one.c"]), Extension("two", ["two.c"])]
setup(name="both", version="1", ext_modules=modules, cmdclass={"build_ext": Build})
"""

ONE_NEEDS_ANOTHER = """
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

class Build(build_ext):
    use_ninja = False
    def get_ext_filename(self, name):
        return f"lib{name}.so"
    def build_extensions(self):
        self.extensions[1].library_dirs.append(self.build_lib)
        build_ext.build_extensions(self)

first = Extension("one", ["one.c", "slow.c"])
modules = [first, Extension("two", ["two.c"], libraries=["one"])]
setup(name="both", version="1", ext_modules=modules, cmdclass={"build_ext": Build})
"""

NOT_FOR_TORCH = TWO_MODULES.replace("Build.use_ninja = False", "pass")
WITH_NINJA = TWO_MODULES.replace("Build.use_ninja = False", "Build.use_ninja = True")

ONE_FAILS = """
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext as Build
Build.use_ninja = False  # as in torch's
modules = [Extension("one", ["wrong.c", "one.c"]), Extension("two", ["two.c", "two_more.c"])]
setup(name="both", version="1", ext_modules=modules)
"""


class Project:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands = folder / "commands"
        self.free = 0
        """Slots that the jobserver had when the build had ended."""
        for name in ("compiler", "other"):
            (folder / name).write_text(COMPILER, encoding="utf-8")
            (folder / name).chmod(0o755)
        for name in ("one", "two"):
            text = f"#ifndef VALUE\n#define VALUE 0\n#endif\nint value = VALUE;\nint {name};\n"
            (folder / f"{name}.c").write_text(text, encoding="utf-8")
            (folder / f"{name}_more.c").write_text(f"int more_{name};\n", encoding="utf-8")
        (folder / "below").mkdir()
        (folder / "slow.c").write_text("int slow;\n", encoding="utf-8")
        (folder / "wrong.c").write_text("int value = nothing;\n", encoding="utf-8")

    def build(self, setup: str, *, slots: int = 0, together: int = 1) -> tuple[int, str]:
        """Make its wheel with its own slot and others; return the exit code and the output."""
        (self.folder / "setup.py").write_text(setup, encoding="utf-8")
        (self.folder / "together").write_text(str(together), encoding="utf-8")
        program = build_wheel_program(SETUPTOOLS, "dist", "links")
        with Jobserver(self.folder / "slots", slots) as jobserver:
            flags = makeflags(jobserver.path, old_make=False)
            env = os.environ | {"CC": "./compiler", "MAKEFLAGS": flags if slots else ""}
            done = subprocess.run(
                [sys.executable, "-c", program],
                cwd=self.folder,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
                check=False,
            )
            self.free = jobserver.free
        return done.returncode, done.stdout

    @property
    def most(self) -> int:
        """The most compilers that ran at a time."""
        running = most = 0
        for line in self.commands.read_text(encoding="utf-8").splitlines():
            running += 1 if line.startswith("begin") else -1
            most = max(most, running)
        return most

    def value(self, module: str, begin: str = "{}.") -> int:
        """Return what a module in the wheel was compiled with."""
        (wheel,) = (self.folder / "dist").glob("*.whl")
        with ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.startswith(begin.format(module)))
            library = ctypes.CDLL(archive.extract(name, self.folder / "installed"))
        return ctypes.c_int.in_dll(library, "value").value


@pytest.fixture
def project(tmp_path: Path) -> Project:
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    return Project(tmp_path)


def test_files_of_all_modules_are_compiled_on_the_free_slots(project: Project) -> None:
    code, said = project.build(TWO_MODULES, slots=2, together=3)
    assert code == 0, said
    assert project.most == 3, "its own slot, and two others"
    assert project.free == 2
    assert "[6/6] " in said, "four files and two modules"
    assert [project.value(name) for name in ("one", "two")] == [0, 0]


def test_without_other_slots_one_file_is_compiled_after_another(project: Project) -> None:
    code, said = project.build(TWO_MODULES)
    assert code == 0, said
    assert project.most == 1


def test_each_file_is_compiled_by_the_compiler_that_torch_had_set_for_it(project: Project) -> None:
    code, said = project.build(AS_TORCH, slots=3, together=4)
    assert code == 0, said
    begun = [line for line in project.commands.read_text().splitlines() if "begin" in line]
    assert len(begun) == 4
    for line in begun:
        assert ("begin other" in line) is ("_more.c" in line), line


def test_an_object_of_two_modules_is_linked_before_it_is_compiled_again(project: Project) -> None:
    code, said = project.build(SAME_FILE, slots=2)
    assert code == 0, said
    assert [project.value(name) for name in ("one", "two")] == [1, 2]


def test_a_module_may_need_one_that_is_before_it(project: Project) -> None:
    code, said = project.build(ONE_NEEDS_ANOTHER, slots=2)
    assert code == 0, said
    assert [project.value(name, "lib{}.") for name in ("one", "two")] == [0, 0]


@pytest.mark.parametrize("setup", [NOT_FOR_TORCH, WITH_NINJA])
def test_only_extensions_without_ninja_are_compiled_in_parallel(
    project: Project, setup: str
) -> None:
    code, said = project.build(setup, slots=2)
    assert code == 0, said
    assert project.most == 1


def test_max_jobs_turns_it_off(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_JOBS", "1")
    code, said = project.build(TWO_MODULES, slots=2)
    assert code == 0, said
    assert project.most == 1


@pytest.mark.parametrize("setup", [ONE_IS_OPTIONAL, USED_WHEN_LINKED])
def test_what_needs_modules_one_by_one_gets_them_so(project: Project, setup: str) -> None:
    code, said = project.build(setup, slots=2)
    assert code == 0, said
    assert project.most == 1
    assert project.value("one") == 0


def test_a_file_that_does_not_compile_ends_the_build(project: Project) -> None:
    code, said = project.build(ONE_FAILS)
    assert code != 0
    assert "wrong.c:1:13: error:" in said
    assert re.search(r"^error: .*wrong\.c", said, re.MULTILINE)
    assert not list(project.folder.glob("dist/*.whl"))
    last = project.commands.read_text(encoding="utf-8").rpartition("begin")[2]
    assert "wrong.c" in last, "nothing was begun after it"


def test_no_progress_is_printed_after_an_error(project: Project) -> None:
    """A reader of the log, and `diagnose`, would take the error for a harmless one."""
    setup = ONE_FAILS.replace("two_more.c", "slow.c")
    code, said = project.build(setup, slots=3, together=4)
    assert code != 0
    assert "slow.c" in project.commands.read_text(encoding="utf-8")
    assert "] slow.c" not in said


def test_slots_are_free_again_after_a_failure(project: Project) -> None:
    code, _ = project.build(ONE_FAILS, slots=2)
    assert code != 0
    assert project.free == 2
