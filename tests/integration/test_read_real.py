"""Packages with real libraries: what is read of them is what readelf and nvcc say."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchyard.package.contents import Binary
from torchyard.package.elf.edit import Rewrite, rewrite
from torchyard.package.read import read_package
from torchyard.package.zip.writer import Member, writing

pytestmark = pytest.mark.integration

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no CUDA here")

SOURCE = """
#include <math.h>
#include <stdio.h>
__attribute__((visibility("hidden"))) int hidden(void) { return 1; }
__attribute__((weak)) int weak(void) { return 2; }
static int local(void) { return 3; }
int exported(double x) { printf("%f", pow(x, 2.5)); return local() + weak() + hidden(); }
int old(void) { return 4; }
"""
VERSIONS = "V_1 { global: old; }; V_2 { global: exported; weak; local: *; } V_1;"


def run(*words: str | Path) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def binary_of(path: Path, folder: Path) -> Binary:
    with writing(folder / "x.zip") as archive:
        archive.add([Member(path.name, path)])
    contents = read_package(folder / "x.zip")
    assert contents.faults == ()
    binary = contents.files[path.name].binary
    assert binary is not None
    return binary


def names(blob: bytes) -> set[str]:
    return {name.decode() for name in blob.split(b"\0") if name}


def compiled(folder: Path, *options: str) -> Path:
    (folder / "x.c").write_text(SOURCE, encoding="utf-8")
    (folder / "x.map").write_text(VERSIONS, encoding="utf-8")
    out = folder / "libx.so.1"
    script = f"-Wl,--version-script={folder / 'x.map'}"
    fixed = ("-shared", "-fPIC", "-Wl,-soname,libx.so.1", "-Wl,--build-id", script, "-lm")
    run("gcc", "-o", out, folder / "x.c", *fixed, *options)
    return out


def compare(binary: Binary, path: Path) -> None:
    """Compare all that is read with what readelf prints."""
    dynamic = run("readelf", "-dW", path)
    for field, word in (("soname", "SONAME"), ("rpath", "RPATH"), ("runpath", "RUNPATH")):
        assert [getattr(binary, field)] == (re.findall(rf"\({word}\).*\[(.*)\]", dynamic) or [""])
    assert list(binary.needed) == re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    assert binary.build_id in run("readelf", "-nW", path)
    versions = run("readelf", "-VW", path)
    needed = versions.partition("Version needs section")[2]
    assert {need.version for need in binary.needs} == set(re.findall(r"Name: (\S+)", needed))
    rows = [line.split() for line in run("readelf", "--dyn-syms", "-W", path).splitlines()]
    rows = [row for row in rows if len(row) > 7 and row[4] in ("GLOBAL", "WEAK", "UNIQUE")]
    symbols = [(row[7].partition("@")[0], row[5], row[6]) for row in rows]
    assert names(binary.imports) == {name for name, _, index in symbols if index == "UND"}
    versioned = {row[7].partition("@")[0] for row in rows if "@" in row[7] and row[6] == "UND"}
    assert names(binary.versioned) == versioned
    assert names(binary.exports) == {
        name for name, seen, index in symbols if index != "UND" and seen in ("DEFAULT", "PROTECTED")
    }
    listed = re.findall(
        r"^ +\[ *\d+\] (\.\S+) +\S+ +\S+ +\S+ +(\S+)", run("readelf", "-SW", path), re.MULTILINE
    )
    assert binary.sections == {name: int(size, 16) for name, size in listed}


@pytest.mark.parametrize("options", [(), ("-Wl,--hash-style=both",), ("-Wl,-z,separate-code",)])
def test_a_library_is_read_as_readelf_does(tmp_path: Path, options: tuple[str, ...]) -> None:
    path = compiled(tmp_path, *options)
    binary = binary_of(path, tmp_path)
    compare(binary, path)
    assert names(binary.exports) >= {"exported", "weak", "old"}
    assert {"V_1", "V_2"} == set(binary.defines)
    assert binary.gnu_hash
    assert not binary.executable_stack
    assert not binary.text_relocations


def test_what_patchelf_moves_is_found(tmp_path: Path) -> None:
    path = compiled(tmp_path)
    before = binary_of(path, tmp_path)
    rewrite(path, Rewrite(rpath=":".join(f"$ORIGIN/{n}" for n in range(400)), soname="y"))
    after = binary_of(path, tmp_path)
    compare(after, path)
    assert (after.exports, after.imports) == (before.exports, before.imports)


def test_a_library_without_sections_loses_only_these(tmp_path: Path) -> None:
    path = compiled(tmp_path)
    whole = binary_of(path, tmp_path)
    data = bytearray(path.read_bytes())
    data[40:48], data[60:64] = bytes(8), bytes(4)
    path.write_bytes(data)
    bare = binary_of(path, tmp_path)
    assert bare.sections == {}
    assert (bare.exports, bare.imports) == (whole.exports, whole.imports)
    assert (bare.needs, bare.defines) == (whole.needs, whole.defines)


def test_bad_habits_are_seen(tmp_path: Path) -> None:
    path = compiled(tmp_path, "-Wl,-z,execstack", "-Wl,--hash-style=sysv")
    binary = binary_of(path, tmp_path)
    assert binary.executable_stack
    assert not binary.gnu_hash
    assert "exported" in names(binary.exports)


def test_programs_of_this_machine_are_read_as_readelf_does(tmp_path: Path) -> None:
    for name in ("sh", "gcc", "readelf"):
        found = shutil.which(name)
        assert found is not None
        path = Path(found).resolve()
        compare(binary_of(path, tmp_path), path)


def test_an_object_file_has_nothing_for_loaders(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text(SOURCE, encoding="utf-8")
    run("gcc", "-c", tmp_path / "x.c", "-o", tmp_path / "x.o")
    binary = binary_of(tmp_path / "x.o", tmp_path)
    assert not binary.dynamic
    assert binary.sections[".text"]


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-Xfatbin", "-compress-all")])
def test_programs_for_gpus_are_those_that_nvcc_was_asked_for(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k(float* p) { p[0] *= 2; }", encoding="utf-8")
    targets = {"80": "sm_80", "90a": "sm_90a", "100f": "sm_100f", "90": "[sm_90,compute_90]"}
    words = [f"-gencode=arch=compute_{arch},code={code}" for arch, code in targets.items()]
    path = tmp_path / "libk.so"
    run("nvcc", "-shared", "-Xcompiler", "-fPIC", *options, *words, "-o", path, tmp_path / "k.cu")
    device = binary_of(path, tmp_path).device
    assert {(code.kind, code.arch) for code in device} == {
        ("cubin", "sm_80"),
        ("cubin", "sm_90"),
        ("cubin", "sm_90a"),
        ("cubin", "sm_100f"),
        ("ptx", "compute_90"),
    }
    assert all(code.programs and code.size for code in device)


@pytest.mark.slow
def test_memory_is_bounded_whatever_the_size_of_a_member(tmp_path: Path) -> None:
    """A library of 700 MB, most of it a hole, stored and compressed."""
    path = compiled(tmp_path)
    with path.open("r+b") as file:
        file.truncate(700 << 20)
    with writing(tmp_path / "x.whl") as archive:
        archive.add([Member("libx.so", path)])
    code = """
import re, sys, pathlib
from torchyard.package.limits import Limits
from torchyard.package.read import read_package

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])

before = peak()
contents = read_package(pathlib.Path(sys.argv[1]), limits=Limits(ratio=10_000))
assert not contents.faults and contents.files["libx.so"].binary.soname == "libx.so.1"
print(peak() - before)
"""
    grown = int(run(sys.executable, "-c", code, tmp_path / "x.whl"))
    print(f"{grown >> 10} MB for a member of 700 MB")
    assert 0 < grown < 64 << 10
