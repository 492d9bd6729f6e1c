"""Conda packages of a small project in C: made, solved for, installed, and used."""

import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from datetime import date
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec
import pytest
from tests.support.conda import (
    GPU,
    SUBDIR,
    UnsolvableError,
    find_python,
    index,
    make_package,
    make_python_package,
    run_exports,
    solve,
    solve_and_install,
)
from tests.support.helpers import CORE, PACKAGE, WORKS, Command, make_project
from tests.support.libraries import BILL

from torchyard.checks.check import apply_rules
from torchyard.checks.policy import CheckPolicy
from torchyard.errors import BuildError, StoreError
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.step import Setting
from torchyard.package.conda.index import INDEX
from torchyard.package.conda.metadata import CondaBuild, CondaKind
from torchyard.package.conda.table import load_conda_table
from torchyard.package.conda.write import Sources, assemble_conda
from torchyard.package.elf.file import read_elf
from torchyard.package.read import read_package
from torchyard.recipes.packing import pack
from torchyard.run.carried_spec import carried_spec

pytestmark = pytest.mark.integration

TAG = "cp312"
PYTHON = "python3.12"
BINDINGS = "bindings:demo-1.0/linux-x86_64/cpu-openblas/cp312"
ALL = tuple(kind for kind in CondaKind if kind is not CondaKind.TESTS)


class Made(NamedTuple):
    """What the core and the bindings of the project left, and a spec."""

    core: Path
    bindings: Path
    spec: Path


def compile_library(out: Path, code: str, *words: str) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", str(out), *words]
    subprocess.run(command, input=code, text=True, check=True)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def make_core(core: Path) -> None:
    lib, vendor = core / "install/lib", core / "vendor"
    origin = "-Wl,-rpath,$ORIGIN"
    compile_library(
        vendor / "libthird.so.1", "int third() { return 2; }", "-Wl,-soname,libthird.so.1"
    )
    compile_library(
        lib / "libdemo_core.so",
        "int third(); int answer() { return 40 + third(); }",
        f"-L{vendor}",
        "-l:libthird.so.1",
        origin,
    )
    compile_library(lib / "libdemo_linalg.so", "int solve() { return 1; }")
    compile_library(core / "linalg/libdemo_linalg.so", "int solve() { return 0; }")
    write(core / "install/include/demo/core.h", "int answer();\n")
    write(core / "install/share/cmake/Demo/DemoConfig.cmake", "# nothing to find\n")
    write(core / "install/bin/demo-tool", "#!/bin/sh\necho tool\n")
    (core / "install/bin/demo-tool").chmod(0o755)


def make_image(core: Path, image: Path, include: Path) -> None:
    """Write an unpacked wheel, with a module that finds its libraries as torch's does."""
    lib, built = image / "demo/lib", core / "install/lib"
    words = [f"-I{include}", f"-L{built}", f"-Wl,-rpath-link,{core / 'vendor'}"]
    compile_library(
        lib / "libdemo_python.so",
        "#include <Python.h>\nint answer();\n"
        "PyObject *ask(PyObject *s, PyObject *a) { return PyLong_FromLong(answer()); }",
        *words,
        "-ldemo_core",
        "-Wl,-rpath,$ORIGIN",
    )
    compile_library(
        image / "demo/_C.so",
        "#include <Python.h>\nPyObject *ask(PyObject *, PyObject *);\n"
        'static PyMethodDef m[] = {{"ask", ask, METH_NOARGS, ""}, {0}};\n'
        'static struct PyModuleDef d = {PyModuleDef_HEAD_INIT, "_C", "", -1, m};\n'
        "PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&d); }",
        *words,
        f"-L{lib}",
        "-ldemo_python",
        "-Wl,-rpath,$ORIGIN/lib",
    )
    for library in built.iterdir():
        (lib / library.name).write_bytes(library.read_bytes())
    write(image / "demo/__init__.py", "from demo._C import ask\n\ndef main():\n    print(ask())\n")
    write(image / "demo/include/demo/core.h", "int answer();\n")
    write(image / "demo/include/demo/python.h", "#define DEMO_PYTHON 1\n")
    write(image / "demo/share/cmake/Demo/DemoConfig.cmake", "# nothing to find\n")
    info = image / "demo-1.2.0+cpu.dist-info"
    write(
        info / "METADATA",
        "Metadata-Version: 2.1\nName: demo\nVersion: 1.2.0+cpu\nSummary: It answers\n"
        "License: BSD-3-Clause\nRequires-Dist: pywin32>=1; sys_platform == 'win32'\n"
        "Requires-Dist: numpy; extra == 'all'\n",
    )
    write(info / "WHEEL", "Wheel-Version: 1.0\nTag: cp312-cp312-linux_x86_64\n")
    write(info / "entry_points.txt", "[console_scripts]\ndemo-say = demo:main\n")
    write(info / "INSTALLER", "pip\n")
    write(info / "direct_url.json", "{}")
    write(info / "RECORD", "demo/__init__.py,,\n")
    write(image / "demo-1.2.0+cpu.data/scripts/demo-script", "#!python\nimport demo\ndemo.main()\n")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made")
    python = find_python(TAG)
    if python is None:
        pytest.skip(f"there is no {TAG} here to make a conda package of")
    made = Made(folder / "core", folder / "bindings", folder / "torchyard-spec.json")
    make_core(made.core)
    make_image(made.core, made.bindings / "image", python / "include" / PYTHON)
    write(made.spec, "{}")
    return made


def assemble(
    made: Made,
    kind: CondaKind,
    out: Path,
    compute: str = "cpu",
    *,
    magma: bool = True,
    project: Path | None = None,
    channel_libraries: bool = False,
) -> Path:
    with_bindings = kind in {CondaKind.PACKAGE, CondaKind.TESTS}
    build = CondaBuild(
        name="demo",
        version="1.2.0+cpu",
        python=TAG if with_bindings else None,
        compute=compute,
        blas="openblas",
        subdir=SUBDIR,
        build_hash="bbbbbbb" if with_bindings else "ccccccc",
        core_hash="ccccccc",
        linalg_apart=compute != "cpu",
        magma=magma,
        channel_libraries=channel_libraries,
    )
    image = made.bindings / "image" if with_bindings else None
    sources = Sources(made.core, image, project)
    scratch = out.parent / f"scratch-{out.name}"
    return assemble_conda(kind, build, sources, scratch=scratch, out=out, spec=made.spec, bill=BILL)


@pytest.fixture(scope="module")
def channel(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A channel with one Python and the project's CPU and CUDA builds."""
    channel = tmp_path_factory.mktemp("channel")
    out = channel / SUBDIR
    out.mkdir()
    make_python_package(TAG, out)
    for kind in ALL:
        if kind is not CondaKind.LINALG:
            assemble(made, kind, out)
        assemble(made, kind, out, "cu130")
    assemble(made, CondaKind.LINALG, out, "cu130", magma=False)
    for name in ("demo-cpu", "demo-gpu"):
        make_package(out, name, "1.0", "old_0")  # from when these held all of a project
    index(channel)
    return channel


@pytest.fixture(scope="module")
def prefix(channel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("prefix") / "p"
    solve_and_install(channel, ["demo-cpu"], prefix)
    return prefix


def output(*words: object) -> str:
    env = {"PATH": os.environ["PATH"]}
    command = [str(word) for word in words]
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout


def test_an_installed_package_works(prefix: Path) -> None:
    assert output(prefix / "bin/python", "-c", "import demo; print(demo.ask())") == "42\n"
    assert output(prefix / "bin/demo-say") == "42\n"
    assert output(prefix / "bin/demo-script") == "42\n"
    assert output(prefix / "bin/demo-tool") == "tool\n"


def test_scripts_work_through_links_and_strange_names(channel: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "a prefix"
    solve_and_install(channel, ["demo-cpu"], prefix)
    (tmp_path / "say").symlink_to(prefix / "bin/demo-say")
    assert output(tmp_path / "say") == "42\n"


def test_each_library_and_header_is_there_once(prefix: Path) -> None:
    package = prefix / "lib" / PYTHON / "site-packages/demo"
    (third,) = (path.name for path in (prefix / "lib").glob("libthird-*.so.1"))
    for name in ("libdemo_core.so", "libdemo_python.so", third):
        assert (package / "lib" / name).readlink() == Path("../../../..") / name
        assert not (prefix / "lib" / name).is_symlink()
    assert (package / "include/demo/python.h").samefile(prefix / "include/demo/python.h")
    assert (package / "share/cmake/Demo/DemoConfig.cmake").is_file()
    assert not any(path.is_symlink() and not path.exists() for path in prefix.rglob("*"))
    assert not (prefix / "info").exists()


def test_a_c_program_is_compiled_against_either_place(prefix: Path, tmp_path: Path) -> None:
    code = "#include <demo/core.h>\n#include <demo/python.h>\nint main() { return answer() - 42; }"
    for place in (prefix, prefix / "lib" / PYTHON / "site-packages/demo"):
        program = tmp_path / "program"
        words = [f"-I{place}/include", f"-L{place}/lib", "-ldemo_core", f"-Wl,-rpath,{place}/lib"]
        command = ["gcc", "-x", "c", "-", "-o", str(program), *words]
        subprocess.run(command, input=code, text=True, check=True)
        output(program)


def test_the_record_is_complete_and_right(prefix: Path) -> None:
    site = prefix / "lib" / PYTHON / "site-packages"
    info = site / "demo-1.2.0+cpu.dist-info"
    assert (info / "INSTALLER").read_text(encoding="utf-8") == "conda\n"
    assert not (info / "direct_url.json").exists()
    with (info / "RECORD").open(newline="", encoding="utf-8") as file:
        rows = {name: (digest, size) for name, digest, size in csv.reader(file)}
    meta = json.loads(next(prefix.glob("conda-meta/demo-1*.json")).read_bytes())
    assert {os.path.normpath(site.relative_to(prefix) / name) for name in rows} == set(
        meta["files"]
    )
    for name, (digest, size) in rows.items():
        if digest:
            content = (site / name).read_bytes()
            expected = urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            assert (digest, size) == (f"sha256={expected}", str(len(content)))
    assert rows["demo/lib/libdemo_core.so"] == ("", "")
    assert rows["../../../bin/demo-say"][0]


def test_two_builds_are_the_same(made: Made, tmp_path: Path) -> None:
    for kind in ALL:
        first = assemble(made, kind, tmp_path / "1", "cu130")
        (made.core / "install/lib/libdemo_core.so").touch()
        second = assemble(made, kind, tmp_path / "2", "cu130")
        assert first.name == second.name
        assert first.read_bytes() == second.read_bytes()
    assert sorted(path.suffix for path in (tmp_path / "1").iterdir()) == [".conda"] * len(ALL)


def test_inputs_are_not_changed(made: Made, tmp_path: Path) -> None:
    def state() -> Iterator[tuple[Path, bytes, int]]:
        for folder in (made.core, made.bindings):
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    yield path, path.read_bytes(), path.stat().st_mode

    before = list(state())
    assemble(made, CondaKind.PACKAGE, tmp_path)
    assemble(made, CondaKind.LIBRARIES, tmp_path, "cu130")
    assert list(state()) == before
    installer = made.bindings / "image/demo-1.2.0+cpu.dist-info/INSTALLER"
    assert installer.read_text(encoding="utf-8") == "pip\n", "no earlier test's package changed it"


def test_nothing_but_the_package_is_left_behind(made: Made, tmp_path: Path) -> None:
    """Whatever a killed job left in its scratch directory gets neither there nor into a package."""
    write(tmp_path / "scratch-out/image/left-over", "from an earlier try\n")
    package = assemble(made, CondaKind.META, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == [package]
    assert not list((tmp_path / "scratch-out/image").iterdir())


def test_only_what_is_packed_is_prepared(made: Made, tmp_path: Path) -> None:
    def prepared(kind: CondaKind) -> set[str]:
        assemble(made, kind, tmp_path / kind, "cu130")
        root = tmp_path / f"scratch-{kind}" / "image"
        originals = {p.stat().st_ino for p in made.core.rglob("*.so*")}
        originals |= {p.stat().st_ino for p in made.bindings.rglob("*.so*")}
        libraries = [p for p in root.rglob("*.so*") if not p.is_symlink()]
        assert not originals & {p.stat().st_ino for p in libraries}, "inputs are not to be changed"
        return {p.name.partition("-")[0] for p in libraries}

    assert prepared(CondaKind.META) == set()
    assert prepared(CondaKind.LINALG) == {"libdemo_linalg.so"}
    assert prepared(CondaKind.LIBRARIES) == {"libdemo_core.so", "libthird"}
    assert prepared(CondaKind.PACKAGE) == {"libdemo_python.so", "_C.so"}


def test_libraries_look_for_others_in_the_prefix_only(made: Made, tmp_path: Path) -> None:
    for kind in (CondaKind.PACKAGE, CondaKind.LIBRARIES):
        assemble(made, kind, tmp_path / kind)
        root = tmp_path / f"scratch-{kind}" / "image"
        for path in (p for p in root.rglob("*.so*") if not p.is_symlink()):
            elf = read_elf(path)
            assert elf is not None
            folders = elf.runpath.replace("$ORIGIN", str(path.parent)).split(":")
            places = [Path(os.path.normpath(folder)) for folder in folders]
            assert root / "lib" in places, f"{path.name} does not find the core"
            assert all(place.is_relative_to(root) for place in places), elf.runpath


def test_files_that_collide_are_told(made: Made, tmp_path: Path) -> None:
    bindings = tmp_path / "bindings"
    shutil.copytree(made.bindings, bindings)
    write(bindings / "image/demo-1.2.0+cpu.data/purelib/demo/__init__.py", "other = True\n")
    with pytest.raises(
        BuildError, match=r"purelib/demo/__init__.py` would replace the existing `.*__init__.py"
    ):
        assemble(made._replace(bindings=bindings), CondaKind.PACKAGE, tmp_path / "out")
    kept = bindings / "image/demo/__init__.py"
    assert kept.read_bytes() == (made.bindings / "image/demo/__init__.py").read_bytes()
    shutil.rmtree(bindings / "image/demo-1.2.0+cpu.data/purelib")
    program = bindings / "image/demo/bin/demo-say"
    write(program, "the project's own\n")
    with pytest.raises(
        BuildError, match=r"entry point `demo-say` would replace the existing `.*bin/demo-say`"
    ):
        assemble(made._replace(bindings=bindings), CondaKind.PACKAGE, tmp_path / "out")
    assert program.read_text(encoding="utf-8") == "the project's own\n"


def test_a_project_with_a_dot_in_its_name(made: Made, tmp_path: Path) -> None:
    image = tmp_path / "image"
    shutil.copytree(made.bindings / "image", image)
    (image / "demo").rename(image / "de_mo")
    build = CondaBuild(
        name="de.mo",
        version="1.2.0",
        python=TAG,
        compute="cpu",
        blas="openblas",
        subdir=SUBDIR,
        build_hash="bbbbbbb",
        core_hash="ccccccc",
    )
    sources = Sources(made.core, image)
    scratch = tmp_path / "scratch"
    out = tmp_path / "out"
    assemble_conda(
        CondaKind.PACKAGE, build, sources, scratch=scratch, out=out, spec=made.spec, bill=BILL
    )
    package = scratch / f"image/lib/{PYTHON}/site-packages/de_mo"
    assert (package / "lib/libdemo_core.so").is_symlink()


def test_the_solver_prefers_cuda_where_there_is_a_driver(channel: Path) -> None:
    assert solve(channel, ["demo"]).builds["demo"] == "cpu_openblas_py312_hbbbbbbb_0"
    chosen = solve(channel, ["demo"], GPU).builds
    assert chosen["demo"] == "cuda130_openblas_py312_hbbbbbbb_130200"
    assert chosen["libdemo"] == "cuda130_openblas_hccccccc_130200"
    assert chosen["libdemo-linalg"] == "cuda130_openblas_magma_hccccccc_130210"


def test_the_plugin_without_magma_can_be_asked_for(channel: Path) -> None:
    chosen = solve(channel, ["demo", "libdemo-linalg * *_nomagma_*"], GPU).builds
    assert chosen["demo"].startswith("cuda130")
    assert chosen["libdemo-linalg"] == "cuda130_openblas_nomagma_hccccccc_130200"


@pytest.mark.parametrize(
    "specs",
    [
        ["demo-cpu 1.2.*", "demo-gpu 1.2.*"],
        ["demo * cpu_*", "demo-gpu"],
        ["demo * cuda*", "demo-cpu"],
        ["demo * cpu_*", "demo-cpu ==1.0"],
        ["libdemo * cpu_*", "demo-gpu"],
        ["demo-cpu", "libdemo * cuda*"],
        ["demo * cpu_*", "libdemo * cuda*"],
        ["demo * cpu_*", "libdemo-linalg"],
        ["demo", "python >=3.13"],
    ],
    ids=" and ".join,
)
def test_what_does_not_fit_together_is_not_installed(channel: Path, specs: list[str]) -> None:
    with pytest.raises(UnsolvableError):
        solve(channel, specs, GPU)


def test_without_a_driver_there_is_no_gpu_package(channel: Path) -> None:
    assert "demo-gpu" in solve(channel, ["demo-gpu 1.2.*"], GPU).builds
    with pytest.raises(UnsolvableError, match="__cuda"):
        solve(channel, ["demo-gpu 1.2.*"])


def test_run_exports(channel: Path) -> None:
    def exports(pattern: str) -> list[str]:
        return run_exports(next((channel / SUBDIR).glob(pattern)))

    assert exports("libdemo-1*cpu*") == ["libdemo >=1.2.0,<1.3.0a0"]
    assert exports("demo-1*cpu*") == ["demo >=1.2.0,<1.3.0a0", "libdemo >=1.2.0,<1.3.0a0"]
    assert exports("demo-cpu*") == []


def test_the_plugin_is_in_one_package_only(channel: Path, tmp_path: Path) -> None:
    solve_and_install(channel, ["libdemo * cpu*"], tmp_path / "cpu")
    assert (tmp_path / "cpu/lib/libdemo_linalg.so").is_file()
    solve_and_install(channel, ["libdemo * cuda*"], tmp_path / "gpu", GPU)
    assert not (tmp_path / "gpu/lib/libdemo_linalg.so").exists()
    solve_and_install(channel, ["libdemo-linalg"], tmp_path / "plugin", GPU)
    assert (tmp_path / "plugin/lib/libdemo_linalg.so").is_file()


@pytest.fixture(scope="module")
def apart(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A channel of builds whose `libuv` is the channel's, and the least Python that they need."""
    folder = tmp_path_factory.mktemp("apart")
    mine = made._replace(core=folder / "core", bindings=folder / "bindings")
    shutil.copytree(made.core, mine.core)
    shutil.copytree(made.bindings, mine.bindings)
    make_libuv(mine.core / "vendor")
    vendor = mine.core / "vendor"
    for lib in (mine.core / "install/lib", mine.bindings / "image/demo/lib"):
        compile_library(
            lib / "libdemo_core.so",
            "int third(); int loop(); int answer() { return third() * loop(); }",
            *(f"-L{vendor}", "-l:libthird.so.1", "-l:libuv.so.1", "-Wl,-rpath,$ORIGIN"),
        )
    out = folder / "channel" / SUBDIR
    out.mkdir(parents=True)
    make_python_package(TAG, out)
    for kind in (CondaKind.PACKAGE, CondaKind.LIBRARIES):
        assemble(mine, kind, out, channel_libraries=True)
    return out.parent


def make_libuv(folder: Path) -> None:
    compile_library(folder / "libuv.so.1", "int loop() { return 21; }", "-Wl,-soname,libuv.so.1")


def test_a_library_of_the_channel_is_required_and_not_bundled(apart: Path, tmp_path: Path) -> None:
    packages = [read_package(path) for path in sorted((apart / SUBDIR).glob("*demo*.conda"))]
    package, libraries = packages
    assert "libuv >=1.44,<2.0a0" in json.loads(libraries.texts[INDEX])["depends"]
    bundled = {PurePosixPath(path).name.partition("-")[0] for path in libraries.files}
    assert "libthird" in bundled, "the table does not have it"
    assert not any("libuv" in name for name in (*package.files, *libraries.files))
    for checked in apply_rules(packages, CheckPolicy(), date(2026, 11, 16)):
        assert not [f for f in checked.findings if f.rule.startswith("linking-")]
    make_libuv(tmp_path / "tree/lib")
    for version in ("1.51.0", "2.0.0"):
        make_package(apart / SUBDIR, "libuv", version, "0", tmp_path / "tree")
    index(apart)
    chosen = solve_and_install(apart, ["demo"], tmp_path / "p")
    assert (tmp_path / "p/conda-meta/libuv-1.51.0-0.json").is_file()
    assert "libuv" in chosen.builds
    assert output(tmp_path / "p/bin/python", "-c", "import demo; print(demo.ask())") == "42\n"
    with pytest.raises(UnsolvableError, match="libuv"):
        solve(apart, ["demo", "libuv >=2"])


def test_a_job_leaves_libraries_to_the_channel(apart: Path, tmp_path: Path) -> None:
    block = "linux-x86_64/cpu-openblas"
    packs: dict[str, Setting] = {"format": "conda", "subdir": SUBDIR, "libraries": "channel"}
    tasks = [
        Task(
            id=f"{stage}:demo-1.2.0/{scope}",
            stage=stage,
            stage_revision=1,
            scope=scope,
            recipe="pytorch",
            fingerprint=digit * 64,
            settings=settings,
        )
        for digit, stage, scope, settings in (
            ("0", Stage.CORE, block, {}),
            ("1", Stage.PACKAGE, f"{block}/any/conda-libtorch", packs),
        )
    ]
    spec, inputs = tmp_path / "torchyard-spec.json", tmp_path / "inputs"
    spec.write_bytes(msgspec.json.encode(JobSpec(tasks=tuple(tasks))))
    shutil.copytree(apart.parent / "core", inputs / "core")
    (path,) = pack(spec, inputs, tmp_path / "scratch", tmp_path / "out")
    libraries = read_package(path)
    assert "libuv >=1.44,<2.0a0" in json.loads(libraries.texts[INDEX])["depends"]
    (checked,) = apply_rules([libraries], CheckPolicy(), date(2026, 11, 16))
    assert not [one for one in checked.findings if one.rule.startswith("linking-rpath")]


def test_an_extension_needs_no_core(made: Made, channel: Path, tmp_path: Path) -> None:
    image = tmp_path / "bindings/image"
    write(image / "extra/__init__.py", "import demo\nanswer = demo.ask()\n")
    write(
        image / "extra-0.1.dist-info/METADATA",
        "Metadata-Version: 2.1\nName: extra\nVersion: 0.1\nRequires-Dist: demo~=1.2.0\n",
    )
    build = CondaBuild(
        name="extra",
        version="0.1",
        python=TAG,
        compute="cpu",
        blas="torch2.13",
        subdir=SUBDIR,
        build_hash="1234567",
    )
    package = assemble_conda(
        CondaKind.PACKAGE,
        build,
        Sources(image=image),
        scratch=tmp_path / "scratch",
        out=tmp_path / "channel" / SUBDIR,
        spec=made.spec,
        bill=BILL,
    )
    assert package.name == "extra-0.1-cpu_torch213_py312_h1234567_0.conda"
    for other in (channel / SUBDIR).glob("*.conda"):
        (package.parent / other.name).hardlink_to(other)
    index(tmp_path / "channel")
    solve_and_install(tmp_path / "channel", ["extra"], tmp_path / "p")
    python = tmp_path / "p/bin/python"
    assert output(python, "-c", "import extra; print(extra.answer)") == "42\n"


def test_tests_are_installed_beside_what_they_test(
    made: Made, channel: Path, tmp_path: Path
) -> None:
    write(tmp_path / "project/test/test_demo.py", "import demo\n\nassert demo.ask() == 42\n")
    mine = tmp_path / "channel"
    assemble(made, CondaKind.TESTS, mine / SUBDIR, project=tmp_path / "project")
    for other in (channel / SUBDIR).glob("*.conda"):
        (mine / SUBDIR / other.name).hardlink_to(other)
    for name in load_conda_table().tests.depends:
        make_package(mine / SUBDIR, name, "1.0", "0")
    index(mine)
    chosen = solve_and_install(mine, ["demo-tests"], tmp_path / "p", GPU)
    assert chosen.builds["demo"].startswith("cpu_"), "the build that it tests, not a better one"
    output(tmp_path / "p/bin/python", tmp_path / "p/share/demo/test/test_demo.py")


def test_the_test_suite_is_that_of_the_source(made: Made, tmp_path: Path) -> None:
    cell = f"linux-x86_64/cpu-openblas/{TAG}"
    tasks = [
        Task(
            id=f"{stage}:demo-1.2.0/{scope}",
            stage=stage,
            stage_revision=1,
            scope=scope,
            recipe="pytorch",
            fingerprint=f"{number}" * 64,
            settings={"format": "conda", "subdir": SUBDIR},
        )
        for number, (stage, scope) in enumerate(
            [
                (Stage.CORE, "linux-x86_64/cpu-openblas"),
                (Stage.BINDINGS, cell),
                (Stage.PACKAGE, f"{cell}/conda-tests"),
            ]
        )
    ]
    spec, inputs = tmp_path / "torchyard-spec.json", tmp_path / "inputs"
    spec.write_bytes(msgspec.json.encode(JobSpec(tasks=tuple(tasks))))
    shutil.copytree(made.core, inputs / "core")
    shutil.copytree(made.bindings, inputs / "bindings")
    with pytest.raises(BuildError, match="demo has no directory of tests"):
        pack(spec, inputs, tmp_path / "scratch", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    write(inputs / "core/project/test/deep/test_demo.py", "tests")
    (package,) = pack(spec, inputs, tmp_path / "scratch", tmp_path / "out")
    assert package.name == "demo-tests-1.2.0-cpu_openblas_py312_h1111111_0.conda"
    packed = tmp_path / "scratch/image/share/demo/test/deep/test_demo.py"
    assert packed.read_text(encoding="utf-8") == "tests"


def make_archive(folder: Path, member: tarfile.TarInfo, text: str = "") -> Path:
    """Write a package whose archive about itself has one member, whatever that is."""
    with tarfile.open(folder / "info.tar", "w") as archive:
        member.size = len(text)
        archive.addfile(member, BytesIO(text.encode()))
    subprocess.run(["zstd", "-q", "-f", "info.tar"], cwd=folder, check=True)
    package = folder / "some.conda"
    with zipfile.ZipFile(package, "w") as zipped:
        zipped.write(folder / "info.tar.zst", "info-some.tar.zst")
    return package


def test_a_package_may_be_anything(tmp_path: Path) -> None:
    spec = tarfile.TarInfo("info/torchyard-spec.json")
    with pytest.raises(StoreError, match=r"can't be read: Object missing required field"):
        carried_spec(make_archive(tmp_path, spec, "{}"))
    write(tmp_path / "secret", "{}")
    spec.type, spec.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
    with pytest.raises(StoreError, match="can't be read as a package"):
        carried_spec(make_archive(tmp_path, spec))
    with pytest.raises(StoreError, match=r"can't be read as a package: metadata.json is missing"):
        carried_spec(make_archive(tmp_path, tarfile.TarInfo("info/index.json"), "{}"))
    with zipfile.ZipFile(tmp_path / "half.conda", "w") as zipped:
        zipped.writestr("info-half.tar.zst", b"half")
    with pytest.raises(StoreError, match="can't be read as a package"):
        carried_spec(tmp_path / "half.conda")


PACK = """\
import sys
from pathlib import Path

from torchyard.package.conda.about import About
from torchyard.package.conda.metadata import CondaMetadata
from torchyard.package.conda.write import write_conda

metadata = CondaMetadata(name="demo", version="1.0", build="h_0", number=0, subdir="linux-64")
spec, files, out = map(Path, sys.argv[1:])
write_conda(files, out, metadata=metadata, description=About(), spec=spec)
"""


def test_a_conda_package_is_rebuilt_from_itself_alone(torchyard: Command, tmp_path: Path) -> None:
    head, _, tail = WORKS.partition("[[steps.package]]")
    words = [sys.executable, "-c", PACK, "{spec}", "{bindings}", "{out}"]
    step = f"run = {json.dumps(words)}\n"  # a script beside the file is not in the sandbox
    file = make_project(
        tmp_path, f"{head}[[steps.package]]\n{step}\n[steps]{tail.partition('[steps]')[2]}"
    )
    for job in ("source:demo-1.0", CORE, BINDINGS, PACKAGE):
        done = torchyard("run", job, "-f", file)
        assert done.code == 0, done.err
    torchyard("store", "get", PACKAGE, "-o", tmp_path / "got", "-f", file)
    package = next((tmp_path / "got").rglob("*.conda"))
    assert carried_spec(package).task.id == PACKAGE
    again = torchyard("rebuild", package, "--yes", "-f", file)
    assert again.code == 0, again.err
    assert "the same, byte for byte" in again.out
    bare = make_package(tmp_path, "bare", "1.0", "0")
    assert "does not say how it was made" in torchyard("rebuild", bare, "-f", file).err
