"""`check` and `diff` on wheels of torch as they are published: what is wrong with them is known.

What is listed here was found by readelf, nm and unzip, too; see docs/evidence.
"""

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import msgspec
import pytest
from tests.support.forked import TORCHYARD
from tests.support.recipe import call, run
from tests.support.schemas import validate
from tests.support.smoke import compile_stub, extract
from tests.support.wheels import NEWEST, shared_wheel

from torchyard.checks.checked import CheckedPackage
from torchyard.checks.compare import PackageDiff, Rewritten
from torchyard.errors import CheckError
from torchyard.features.check.report import CheckReport

pytestmark = pytest.mark.integration

needs_gcc = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no compiler here")
MEGABYTE = 1 << 20
MOST_MEMORY = 128 * MEGABYTE
"""Beyond what Python itself needs."""

CONFIG = "torch/share/cmake/ATen/ATenConfig.cmake"
LIBRARY = "torch/lib/libc10.so"
FOUND_IN_CPU = [
    ("error", "linking-environment", "torch/bin/test_shim", "`libtorch.so`"),
    ("error", "linking-environment", "torch/bin/test_shim", "`libtorch_cpu.so`"),
    ("error", "linking-environment", "torch/bin/test_shim", "`libc10.so`"),
    ("error", "linking-rpath-outside", "torch/bin/FileStoreTest", "so do 68 others"),
    ("warning", "duplicate-file", "torch/bin/protoc-3.13.0.0", "also in torch/bin/protoc"),
    ("warning", "leaked-path", CONFIG, "line 8: /__w/pytorch/pytorch/torch/include"),
    ("warning", "symbols-leaked", "torch/lib/libtorch_cpu.so", "25 functions of std::filesystem"),
]
SYSTEM = "system"
LOADED = {"audio", "embed", "iframe", "img", "link", "object", "script", "source", "video"}
"""Elements that may bring something from elsewhere into a page."""


class Used(NamedTuple):
    """How a process ended, what it printed, and the most memory that it had."""

    code: int
    out: bytes
    memory: int


MEASURE = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss, file=sys.stderr, flush=True)
os._exit(os.waitstatus_to_exitcode(status))
"""
"""A process begins with the memory of the one that starts it, so a small one does."""


def used(*argv: object) -> Used:
    words = [sys.executable, "-c", MEASURE, *map(str, argv)]
    done = subprocess.run(words, capture_output=True, check=False)
    return Used(done.returncode, done.stdout, int(done.stderr) * 1024)


class Checked(NamedTuple):
    """What was found in one package, its page, and the memory that it took."""

    document: CheckReport
    page: str
    memory: int

    @property
    def package(self) -> CheckedPackage:
        (package,) = self.document.packages
        return package

    def has(self, rule: str, member: str, what: str) -> bool:
        return any(
            (found.rule, found.member) == (rule, member) and what in found.what
            for found in self.package.findings
        )


def check(wheel: Path, folder: Path) -> Checked:
    page = folder / "page.html"
    bare = min(used(sys.executable, "-c", "pass").memory for _ in range(3))
    done = used(*TORCHYARD, "check", wheel, "--json", "--html", page)
    assert done.code == CheckError.exit_code
    validate(json.loads(done.out), "check")
    document = msgspec.json.decode(done.out, type=CheckReport)
    return Checked(document, page.read_text(encoding="utf-8"), done.memory - bare)


def diff(before: Path, after: Path) -> PackageDiff:
    text = call(*TORCHYARD, "diff", before, after, "--json")
    validate(json.loads(text), "diff")
    return msgspec.json.decode(text, type=PackageDiff)


# ------------------------------------------------------------------------------ for CPUs


@pytest.fixture(scope="module")
def cpu(torch_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Checked:
    return check(torch_wheel, tmp_path_factory.mktemp("cpu"))


def test_just_what_is_wrong_is_found(cpu: Checked) -> None:
    found = cpu.package.findings
    assert len(found) == len(FOUND_IN_CPU), found
    for one, (severity, rule, member, what) in zip(found, FOUND_IN_CPU, strict=True):
        assert (one.severity, one.rule, one.member) == (severity, rule, member)
        assert what in one.what
    assert cpu.document.findings == {"error": 4, "warning": 3, "note": 0}


def test_the_report_tells_what_is_in_the_wheel(cpu: Checked, torch_wheel: Path) -> None:
    package = cpu.package
    assert package.file == torch_wheel.name
    assert package.bytes == torch_wheel.stat().st_size
    assert (package.release, package.python, package.compute) == (
        "2.13.0+cpu",
        "cp311",
        "cpu",
    )
    assert package.device == []
    assert set(package.outside.values()) == {SYSTEM}
    libraries = {library.member: library for library in package.libraries}
    assert "libtorch_cpu.so" in libraries["torch/lib/libtorch_python.so"].needed
    assert libraries["torch/lib/libtorch_cpu.so"].exports > 10_000


class Resources(HTMLParser):
    """What a page makes a browser load, from whatever place."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        places = {name: value or "" for name, value in attrs}
        if tag in LOADED:
            self.loaded += [places[key] for key in ("src", "href", "data") if key in places]


def test_the_page_loads_nothing(cpu: Checked) -> None:
    assert Resources(cpu.page).loaded == []
    assert re.findall(r"https?://|@import|url\(|fetch\(|XMLHttpRequest", cpu.page) == []
    for _, rule, member, _ in FOUND_IN_CPU:
        assert rule in cpu.page
        assert member in cpu.page


def test_memory_is_bounded(cpu: Checked) -> None:
    print(f"{cpu.memory / MEGABYTE:.0f} MB beyond Python's")
    assert 0 < cpu.memory < MOST_MEMORY


# ---------------------------------------------------------------------------- in pairs


@pytest.fixture(scope="module")
def relabelled(torch_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("relabelled")
    call(*TORCHYARD, "repair", torch_wheel, "-o", folder, "--local", "none", "--no-check")
    (wheel,) = folder.glob("[!.]*")
    return wheel


class Extension(NamedTuple):
    """A module that calls one function of the real libc10.so, and that library."""

    module: Path
    library: Path
    function: str

    def loads_with(self, library: Path) -> bool:
        """What the system's own loader says."""
        code = f"import ctypes, os; ctypes.CDLL({str(self.module)!r}, os.RTLD_NOW)"
        env = {"LD_LIBRARY_PATH": str(library.parent)}
        done = subprocess.run([sys.executable, "-c", code], env=env, check=False, stderr=-1)
        assert not done.returncode or self.function.encode() in done.stderr
        return not done.returncode


@pytest.fixture(scope="module")
def extension(torch_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Extension:
    folder = tmp_path_factory.mktemp("extension")
    library = extract(torch_wheel, LIBRARY, folder)
    listed = call("nm", "-D", "--defined-only", library)
    function = re.findall(r" T (_ZN3c10\w+)$", listed, re.MULTILINE)[0]
    code = f'extern "C" void {function}(); extern "C" void use() {{ {function}(); }}\n'
    module = compile_stub(folder, "use.so", code, "-Wl,--no-as-needed", str(library))
    return Extension(module, library, function)


@pytest.mark.slow
def test_nothing_but_labels_differs(torch_wheel: Path, relabelled: Path) -> None:
    document = diff(torch_wheel, relabelled)
    assert document.removed == document.added == {}
    assert set(document.changed) == {
        "torch/version.py",
        "torch-2.13.0.dist-info/METADATA",
        "torch-2.13.0.dist-info/RECORD",
    }
    assert document.same > 12_000
    assert document.libraries == ()
    assert document.metadata == (Rewritten("version", "2.13.0+cpu", "2.13.0"),)


@needs_gcc
def test_an_extension_misses_what_was_cut(
    torch_wheel: Path, extension: Extension, tmp_path: Path
) -> None:
    """As the loader says, too."""
    cut = compile_stub(tmp_path, "libc10.so", "namespace c10 { int other; }\n")
    wheel = tmp_path / torch_wheel.name
    with ZipFile(wheel, "w") as archive:
        archive.write(cut, LIBRARY)
        archive.writestr("torch-2.13.0.dist-info/METADATA", "")
    module = tmp_path / f"use-1.0-{'-'.join(torch_wheel.stem.split('-')[2:])}.whl"
    with ZipFile(module, "w") as archive:
        archive.write(extension.module, "use/use.so")
        archive.writestr("use-1.0.dist-info/METADATA", "")
    kept = run(*TORCHYARD, "compat", module, "--torch", torch_wheel)
    assert kept.returncode == 0, kept.stderr
    assert extension.loads_with(extension.library)
    lost = run(*TORCHYARD, "compat", module, "--torch", wheel, "--json")
    assert lost.returncode == CheckError.exit_code
    assert extension.function in lost.stdout
    assert not extension.loads_with(cut)


# ------------------------------------------------------------------------------ for GPUs


@pytest.mark.slow
def test_the_newest_wheel_for_gpus(tmp_path_factory: pytest.TempPathFactory) -> None:
    """All that is wrong with 2.15.0; should a newer one be better, this is to be read anew."""
    wheel = shared_wheel(tmp_path_factory, NEWEST, "3.12")
    gpu = check(wheel, tmp_path_factory.mktemp("gpu"))
    fortran = "torch/lib/libgfortran.so.5"
    assert gpu.has("leaked-path", CONFIG, "line 8: /tmp/tmp")
    assert gpu.has("linking-unresolved", fortran, "needs `libquadmath.so.0`")
    assert gpu.has("linking-orphan", fortran, "nothing in the package needs this library")
    module = "torch/_C.cpython-312-x86_64-linux-gnu.so"
    assert gpu.has("linking-rpath-above", module, "`$ORIGIN/../../nvidia/cudnn/lib` (`../nvidia")
    assert gpu.has("duplicate-file", "torch/bin/protoc-3.21.12.0", "also in torch/bin/protoc")
    rules = [found.rule for found in gpu.package.findings]
    assert rules.count("linking-unresolved") == gpu.document.findings["error"] == 1
    assert "linking-undeclared" not in rules
    assert "linking-environment" not in rules
    outside = gpu.package.outside
    assert [library for library, owner in outside.items() if not owner] == ["libquadmath.so.0"]
    siblings = {library: owner for library, owner in outside.items() if owner.startswith("nvidia-")}
    assert siblings["libcublas.so.13"] == siblings["libcublasLt.so.13"] == "nvidia-cublas"
    assert siblings["libcudnn.so.9"] == "nvidia-cudnn-cu13"
    assert len(siblings) > 10
    assert all(owner in (SYSTEM, "") for name, owner in outside.items() if name not in siblings)
    archs = {(code.kind, code.arch) for code in gpu.package.device}
    wanted = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
    assert archs >= {("cubin", arch) for arch in wanted} | {("ptx", "compute_120")}
    assert gpu.memory < MOST_MEMORY
    print(f"{gpu.memory / MEGABYTE:.0f} MB beyond Python's, {sorted(archs)}")
