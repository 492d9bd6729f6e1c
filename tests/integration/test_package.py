"""Packages of real libraries: compiled, assembled, installed, and loaded."""

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress
from datetime import date
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.examples import examples
from tests.support.libraries import BILL, Built, build, compile_library, run

from torchyard.checks.check import apply_rules
from torchyard.checks.policy import CheckPolicy
from torchyard.errors import BuildError, HostError
from torchyard.host.machine import python_name
from torchyard.package.assemble.assembled import Assembled
from torchyard.package.assemble.collect import collect
from torchyard.package.assemble.prepare import dynamic_files
from torchyard.package.assemble.same_core import check_core
from torchyard.package.assemble.vendor import find_vendored
from torchyard.package.contents import Contents
from torchyard.package.elf.edit import Rewrite, rewrite, strip
from torchyard.package.elf.file import (
    read_elf,
    section_difference,
    section_names,
    symbol_difference,
    symbols,
)
from torchyard.package.libtorch.assemble import assemble_libtorch
from torchyard.package.libtorch.write import ZipLabel
from torchyard.package.policy import policy_for
from torchyard.package.read import read_package
from torchyard.package.wheel.assemble import assemble_wheel
from torchyard.package.zip.writer import Member, writing

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("built"))


def make_spec(place: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    spec = place / "torchyard-spec.json"
    spec.write_text("{}", encoding="utf-8")
    return spec


def make_wheel(built: Built, place: Path, compute: str = "cpu") -> Assembled:
    return assemble_wheel(
        install=built.install,
        vendor=built.vendor,
        image=built.image,
        scratch=place / "scratch",
        out=place / "out",
        name="tinytorch",
        version=f"1.2.0+{compute}",
        python=python_name(),
        platform_tag=f"manylinux_2_28_{platform.machine()}",
        compute=compute,
        toolkit="13.0",
        pins={},
        spec=make_spec(place),
        bill=BILL,
    )


def make_libtorch(built: Built, place: Path, kind: str = "libtorch") -> Assembled:
    label = ZipLabel("tinytorch", "1.2.0+cpu", "linux-x86_64", kind)
    return assemble_libtorch(
        label,
        install=built.install,
        vendor=built.vendor if label.has_deps else None,
        scratch=place / "scratch",
        out=place / "out",
        compute="cpu",
        git_hash="c0ffee",
        spec=make_spec(place),
        bill=BILL,
    )


def unpack(archive: Path, to: Path) -> Path:
    run("unzip", "-q", archive, "-d", to)
    return to


# ----------------------------------------------------------------------------------------- elf


def readelf_tags(path: Path, word: str) -> list[str]:
    shown = run("readelf", "-dW", path)
    return re.findall(rf"\({word}\).*\[(.*)\]", shown)


def test_elf_files_are_read_as_readelf_does(built: Built) -> None:
    system = Path("/bin/sh").resolve()
    for path in (*built.install.glob("lib/*"), *built.vendor.iterdir(), system):
        elf = read_elf(path)
        assert elf is not None
        assert elf.dynamic
        assert elf.is_64
        assert elf.machine == platform.machine()
        assert list(elf.needed) == readelf_tags(path, "NEEDED")
        assert [elf.soname] == (readelf_tags(path, "SONAME") or [""])
        assert [elf.rpath] == (readelf_tags(path, "RPATH") or [""])
        assert [elf.runpath] == (readelf_tags(path, "RUNPATH") or [""])
        notes = re.findall(r"Build ID: (\w+)", run("readelf", "-nW", path))
        assert [elf.build_id] == (notes or [""])
        listed = re.findall(r"^ +\[ *\d+\] (\S*) ", run("readelf", "-SW", path), re.MULTILINE)
        assert [name for name in section_names(path) if name] == [name for name in listed if name]


def test_symbols_are_those_of_readelf(built: Built) -> None:
    path = built.install / "lib/libtiny.so"
    rows = [line.split() for line in run("readelf", "-sW", path).splitlines()]
    expected = {
        row[7].partition("@")[0]
        for row in rows
        if len(row) > 7 and row[6] not in ("UND", "Ndx") and row[3] not in ("FILE", "SECTION")
    }
    found = symbols(path)
    assert {symbol.name for symbol in found} == expected
    assert ("tiny", "func", ".text") in found


def test_old_and_foreign_files_are_read(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "libx.so", "int x;", options=["-Wl,--disable-new-dtags"])
    rewrite(path, Rewrite(rpath="/a:/b", force_rpath=True, soname="liby.so.1"))
    elf = read_elf(path)
    assert elf is not None
    assert (elf.rpath, elf.runpath, elf.soname) == ("/a:/b", "", "liby.so.1")
    data = bytearray(path.read_bytes())
    data[40:48], data[60:64] = bytes(8), bytes(4)  # no section headers
    path.write_bytes(data)
    assert read_elf(path) == elf
    assert symbols(path) == set()
    (tmp_path / "x.c").write_text("int x;", encoding="utf-8")
    run("gcc", "-c", tmp_path / "x.c", "-o", tmp_path / "x.o")
    relocatable = read_elf(tmp_path / "x.o")
    assert relocatable is not None
    assert not relocatable.dynamic
    rewrite(tmp_path / "x.o", Rewrite(rpath="/a"))  # is none of patchelf's business


@pytest.mark.parametrize("target", ["elf32-i386", "elf32-big", "elf64-big"])
def test_other_classes_and_byte_orders_are_read(tmp_path: Path, target: str) -> None:
    (tmp_path / "x").write_bytes(b"some bytes")
    path = tmp_path / "x.o"
    words = ["objcopy", "-I", "binary", "-O", target, "x", "x.o"]
    subprocess.run(words, check=True, cwd=tmp_path)
    elf = read_elf(path)
    assert elf is not None
    assert (elf.is_64, elf.dynamic) == (target == "elf64-big", False)
    assert symbols(path) == {
        ("_binary_x_start", "notype", ".data"),
        ("_binary_x_end", "notype", ".data"),
        ("_binary_x_size", "notype", "*ABS*"),
    }


changes = st.lists(st.tuples(st.integers(0, 1023), st.integers(0, 255)), max_size=8)


@settings(max_examples=examples(300))
@given(changes, st.integers(-600, 600), st.integers(0, 64))
def test_a_damaged_file_is_never_a_surprise(
    built: Built, flips: list[tuple[int, int]], place: int, cut: int
) -> None:
    """The headers are at the beginning and at the end of a file."""
    data = bytearray((built.install / "lib/libc10.so").read_bytes())
    for offset, value in flips:
        data[(place + offset) % len(data)] = value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.so")
        path.write_bytes(data[: len(data) - cut])
        for read in (read_elf, symbols, section_names):
            with suppress(BuildError):
                read(path)


def test_differences(tmp_path: Path) -> None:
    a = compile_library(tmp_path / "a/x.so", "int one; int both(void) { return 1; }")
    b = compile_library(tmp_path / "b/x.so", "int two; int both(void) { return 1; }")
    c = compile_library(tmp_path / "c/x.so", "int one; int both(void) { return 2; }")
    assert symbol_difference(a, b) == (["one"], ["two"])
    assert symbol_difference(a, c) == ([], [])
    assert ".text" in section_difference(a, c)
    assert section_difference(a, a) == []


def test_one_rewrite_changes_everything(tmp_path: Path) -> None:
    x = compile_library(tmp_path / "libx.so", "int x;")
    y = compile_library(tmp_path / "liby.so", "int y;")
    user = compile_library(tmp_path / "libuser.so", "int user;", x, y)
    rewrite(user, Rewrite(rpath="$ORIGIN", soname="n.so", needed={"libx.so": "a", "liby.so": "b"}))
    elf = read_elf(user)
    assert elf is not None
    assert (elf.needed, elf.runpath, elf.soname) == (("a", "b", "libc.so.6"), "$ORIGIN", "n.so")
    before = user.stat().st_mtime_ns
    rewrite(user, Rewrite(rpath="$ORIGIN", soname="n.so", needed={"libx.so": "a"}))
    assert user.stat().st_mtime_ns == before
    rewrite(user, Rewrite(rpath=""))
    elf = read_elf(user)
    assert elf is not None
    assert elf.runpath == ""


def test_debug_information_is_kept_apart(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "libx.so", "int f(void) { return 42; }", options=["-g"])
    size = path.stat().st_size
    assert strip(path, tmp_path / "debug/libx.so.debug")
    assert path.stat().st_size < size
    assert not any(name.startswith(".debug") for name in section_names(path))
    assert ".debug_info" in section_names(tmp_path / "debug/libx.so.debug")
    assert ".gnu_debuglink" in section_names(path)
    assert b"libx.so.debug\0" in path.read_bytes()
    assert ctypes.CDLL(str(path)).f() == 42
    plain = compile_library(tmp_path / "liby.so", "static int hidden; int *y = &hidden;")
    assert not strip(plain, tmp_path / "debug/liby.so.debug")
    assert not (tmp_path / "debug/liby.so.debug").exists()
    assert "hidden" not in {symbol.name for symbol in symbols(plain)}


def test_a_tool_that_fails_is_told(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "libx.so", "int x;", options=["-g"])
    (tmp_path / "debug").mkdir()
    with pytest.raises(HostError, match=r"`objcopy --only-keep-debug .* failed"):
        strip(path, tmp_path / "debug")


# --------------------------------------------------------------------------------------- wheel


def test_wheel_is_installed_and_works(built: Built, tmp_path: Path) -> None:
    before = {path: path.stat() for path in built.image.rglob("*")}
    wheel = make_wheel(built, tmp_path).package
    after = {path: path.stat() for path in built.image.rglob("*")}
    assert {p: s.st_mtime_ns for p, s in before.items()} == {
        p: s.st_mtime_ns for p, s in after.items()
    }
    by_pip, by_uv = tmp_path / "pip", tmp_path / "uv"
    options = ("install", "--no-deps", "--no-index", "-q", "--target")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir")
    run(*pip, *options, by_pip, wheel)
    run("uv", "pip", *options, by_uv, wheel, env={**os.environ, "UV_NO_CACHE": "1"})
    for site in (by_pip, by_uv):
        (library,) = site.glob("tinytorch/lib/libvend*")
        digest = sha256((built.vendor / "libvend.so.2").read_bytes()).hexdigest()[:8]
        assert library.name == f"libvend-{digest}.so.2"
        assert (site / "tinytorch/lib/libgomp.so.1").exists()
        assert not list(site.glob("tinytorch/lib/*unused*"))
        code = "import tinytorch; print(tinytorch.answer)"
        env = {"PYTHONPATH": str(site), "PATH": os.environ["PATH"]}
        assert run(sys.executable, "-c", code, env=env) == "42\n"
        tool = subprocess.run([site / "tinytorch/bin/tool"], check=False, env={})
        assert tool.returncode == 42


def test_names_and_directories_in_a_wheel(built: Built, tmp_path: Path) -> None:
    site = unpack(make_wheel(built, tmp_path).package, tmp_path / "site") / "tinytorch"
    for path in (site / "_C.so", *site.glob("lib/*"), site / "bin/tool"):
        elf = read_elf(path)
        assert elf is not None
        assert not elf.rpath
        expected = {"_C.so": "$ORIGIN:$ORIGIN/lib", "tool": "$ORIGIN:$ORIGIN/../lib"}
        assert elf.runpath == expected.get(path.name, "$ORIGIN")
        beside = {file.name for file in site.glob("lib/*")} | {"libc.so.6"}
        assert set(elf.needed) <= beside
        assert elf.soname in (path.name, "")


def test_cuda_wheels_look_into_other_wheels_first(built: Built, tmp_path: Path) -> None:
    image, install = tmp_path / "image", tmp_path / "install"
    shutil.copytree(built.image, image)
    shutil.copytree(built.install, install)
    cudart = compile_library(tmp_path / "libcudart.so.13", "int cudart;")
    compile_library(install / "lib/libtiny_cuda.so", "int cuda;", cudart)
    shutil.copy(install / "lib/libtiny_cuda.so", image / "tinytorch/lib")
    changed = Built(install, built.vendor, image)
    site = unpack(make_wheel(changed, tmp_path, "cu130").package, tmp_path / "site")
    elf = read_elf(site / "tinytorch/lib/libtiny_cuda.so")
    assert elf is not None
    assert elf.needed == ("libcudart.so.13", "libc.so.6")
    assert elf.rpath.endswith(":$ORIGIN/../../nvidia/cu13/lib:$ORIGIN")
    assert not elf.runpath
    (info,) = site.glob("*.dist-info")
    asked = 'Requires-Dist: cuda-toolkit[cudart]==13.0.*; platform_system == "Linux"\n'
    assert asked in (info / "METADATA").read_text("utf-8")
    with pytest.raises(BuildError, match=r"libtiny_cuda.so` needs `libcudart.so.13`"):
        make_libtorch(changed, tmp_path / "zip")


def test_a_tag_promises_no_older_system_than_the_libraries_need(
    built: Built, tmp_path: Path
) -> None:
    image = tmp_path / "image"
    shutil.copytree(built.image, image)
    code = "#define _GNU_SOURCE\n#include <stdlib.h>\nunsigned any() { return arc4random(); }"
    try:
        library = compile_library(image / "tinytorch/lib/libnew.so", code)
    except subprocess.CalledProcessError:
        pytest.skip("this system's glibc is older than 2.36, which has arc4random")
    elf = read_elf(library)
    assert elf is not None
    listed = subprocess.run(
        ["readelf", "-V", "--wide", library], check=True, capture_output=True, text=True
    ).stdout
    assert set(elf.versions) == set(re.findall(r"Name: (\S+)", listed))
    assert "GLIBC_2.36" in elf.versions
    wheel = make_wheel(Built(built.install, built.vendor, image), tmp_path).package
    assert f"-manylinux_2_36_{platform.machine()}." in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
        assert f"manylinux_2_36_{platform.machine()}\n" in archive.read(name).decode()


def test_libraries_that_are_opened_by_name_are_brought_along(tmp_path: Path) -> None:
    install, vendor = tmp_path / "install", tmp_path / "vendor"
    cudnn = compile_library(vendor / "libcudnn.so.9", "int cudnn;")
    compile_library(vendor / "libcudnn_ops.so.9", "int ops;")
    compile_library(vendor / "libother.so.9", "int other;")
    compile_library(install / "lib/libtiny.so", "int tiny;", cudnn)
    made = make_libtorch(Built(install, vendor, install), tmp_path)
    with zipfile.ZipFile(made.package) as archive:
        libraries = [name for name in archive.namelist() if "/lib/" in name]
    prefix = "libtinytorch/lib/"
    assert libraries == [
        f"{prefix}{n}" for n in ("libcudnn.so.9", "libcudnn_ops.so.9", "libtiny.so")
    ]


def test_libraries_that_are_opened_by_name_are_collected(tmp_path: Path) -> None:
    tools, vendor = tmp_path / "tools", tmp_path / "vendor"
    deep = compile_library(tools / "libdeep.so.1", "int deep;")
    cudnn = compile_library(tools / "libcudnn.so.9.1", "int cudnn;", soname="libcudnn.so.9")
    (tools / "libcudnn.so.9").symlink_to(cudnn.name)
    compile_library(tools / "libcudnn_ops.so.9.1", "int ops;", deep, soname="libcudnn_ops.so.9")
    (tools / "libcudnn_ops.so.9").symlink_to("libcudnn_ops.so.9.1")
    compile_library(tools / "libcudnn_ops.so.8", "int old;")
    compile_library(tools / "libother.so.9", "int other;")
    user = compile_library(tmp_path / "install/lib/libtiny.so", "int tiny;", cudnn)
    policy = policy_for("zip", "cu130", "")
    collect([user], vendor, policy, lambda name: tools / name)
    assert sorted(path.name for path in vendor.iterdir()) == [
        "libcudnn.so.9",
        "libcudnn_ops.so.9",
        "libdeep.so.1",
    ]
    brought = find_vendored(dynamic_files(tmp_path / "install", [user]), (vendor,), policy)
    assert {library.source for library in brought} == set(vendor.iterdir())


def test_what_nobody_has_is_told(built: Built, tmp_path: Path) -> None:
    vendor = tmp_path / "vendor"
    shutil.copytree(built.vendor, vendor)
    (vendor / "libdeep.so.1").unlink()
    message = r"lib/libvend-\w+\.so\.2` needs `libdeep\.so\.1`, which is neither"
    with pytest.raises(BuildError, match=message) as raised:
        make_wheel(built._replace(vendor=vendor), tmp_path)
    assert "vendor/" in str(raised.value.diagnostics[0].hint)


def test_debug_information_has_an_archive_of_its_own(built: Built, tmp_path: Path) -> None:
    made = make_wheel(built, tmp_path)
    assert made.debug is not None
    assert made.debug.name == f"{made.package.stem}-debug.zip"
    with zipfile.ZipFile(made.debug) as archive:
        folder = "tinytorch/lib/"
        assert archive.namelist() == [f"{folder}libc10.so.debug", f"{folder}libtiny.so.debug"]
    site = unpack(made.package, tmp_path / "site")
    kept = unpack(made.debug, tmp_path / "kept") / "tinytorch/lib/libtiny.so.debug"
    link = tmp_path / "link"
    library = site / "tinytorch/lib/libtiny.so"
    run("objcopy", "--dump-section", f".gnu_debuglink={link}", library, tmp_path / "copy")
    checksum = crc32(kept.read_bytes()).to_bytes(4, sys.byteorder)
    assert link.read_bytes() == b"libtiny.so.debug".ljust(20, b"\0") + checksum
    ours, theirs = read_elf(library), read_elf(kept)
    assert ours is not None
    assert theirs is not None
    assert ours.build_id == theirs.build_id != ""


def test_packages_are_the_same_wherever_and_whenever_they_are_made(
    built: Built, tmp_path: Path
) -> None:
    def digests(place: Path) -> list[str]:
        files = (*make_wheel(built, place), *make_libtorch(built, place / "zip"))
        return [sha256(file.read_bytes()).hexdigest() for file in files if file]

    first = digests(tmp_path / "a")
    assert len(first) == 4
    for path in (*built.install.rglob("*"), *built.image.rglob("*"), *built.vendor.rglob("*")):
        os.utime(path, (2e9, 2e9))
    assert digests(tmp_path / "another/and/longer") == first
    code = (
        "import sys; from pathlib import Path; from tests.integration.test_package import *\n"
        "built = Built(*map(Path, sys.argv[1:4])); place = Path(sys.argv[4])\n"
        "made = (*make_wheel(built, place), *make_libtorch(built, place / 'zip'))\n"
        "print(*(sha256(file.read_bytes()).hexdigest() for file in made if file))"
    )
    root = Path(__file__).parents[2]
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root), "LC_ALL": "C"}
        printed = run(sys.executable, "-c", code, *built, tmp_path / seed, env=env)
        assert printed.split() == first


def test_the_scratch_directory_may_be_on_another_disk(built: Built, tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        elsewhere = make_libtorch(built, Path(folder)).package.read_bytes()
    assert elsewhere == make_libtorch(built, tmp_path).package.read_bytes()


# ---------------------------------------------------------------------------------------- core


def test_the_core_must_be_the_same(built: Built, tmp_path: Path) -> None:
    package = tmp_path / "tinytorch"
    shutil.copytree(built.image / "tinytorch", package)
    check_core(built.install, package)
    library = package / "lib/libc10.so"
    label = "int c10(void) { return 0; } int nnpack_label; int more[2];"
    compile_library(library, label, options=["-g", "-Wl,-rpath,/opt"])
    with pytest.raises(BuildError, match=r"`libc10.so` .*adds `more`, `nnpack_label`"):
        check_core(built.install, package)
    other = "int c10(void) { return 7; }"
    compile_library(library, other, options=["-g", "-Wl,-rpath,/opt"])
    with pytest.raises(BuildError, match=r"symbols are equal, but not .*`.text`"):
        check_core(built.install, package)
    shutil.copy(built.install / "lib/libc10.so", library)
    with library.open("ab") as file:
        file.write(b"\0")
    with pytest.raises(BuildError, match="not the data around them"):
        check_core(built.install, package)
    with pytest.raises(BuildError, match="has no libraries"):
        check_core(tmp_path, package)
    library.unlink()
    with pytest.raises(BuildError, match=r"`libc10.so` is not in"):
        make_wheel(built._replace(image=tmp_path), tmp_path)


def test_a_package_is_called_like_its_project(built: Built, tmp_path: Path) -> None:
    (tmp_path / "image").mkdir()
    with pytest.raises(BuildError, match="has no folder `tinytorch`"):
        make_wheel(built._replace(image=tmp_path / "image"), tmp_path)


# ------------------------------------------------------------------------------------ libtorch


def test_libtorch_works_where_it_is_unpacked(built: Built, tmp_path: Path) -> None:
    made = make_libtorch(built, tmp_path)
    home = unpack(made.package, tmp_path / "there") / "libtinytorch"
    assert (home / "include/tiny.h").exists()
    assert subprocess.run([home / "bin/tool"], check=False, env={}).returncode == 42
    for library in home.glob("lib/*"):
        elf = read_elf(library)
        assert elf is not None
        assert (elf.rpath, elf.runpath) == ("", "$ORIGIN")
    moved = home.rename(tmp_path / "elsewhere")
    (tmp_path / "user.c").write_text("int tiny(void); int main(void) { return tiny(); }", "utf-8")
    search = f"-Wl,-rpath,{moved / 'lib'}"
    run("gcc", tmp_path / "user.c", moved / "lib/libtiny.so", search, "-o", tmp_path / "user")
    assert subprocess.run([tmp_path / "user"], check=False, env={}).returncode == 42


def test_libtorch_without_its_dependencies(built: Built, tmp_path: Path) -> None:
    full = read_package(make_libtorch(built, tmp_path / "full").package)
    made = make_libtorch(built, tmp_path, "libtorch-shared-without-deps").package
    assert made.name == "libtinytorch-shared-without-deps-1.2.0+cpu.zip"
    bare = read_package(made)
    vendored = {name for name in full.files if name not in bare.files}
    assert vendored
    assert all(name.startswith("libtinytorch/lib/") for name in vendored)
    assert bare.files.keys() < full.files.keys()

    def missing(contents: Contents) -> list[str]:
        (checked,) = apply_rules([contents], CheckPolicy(), date(2026, 11, 16))
        return [one.what for one in checked.findings if one.rule == "linking-unresolved"]

    assert missing(bare) == []
    assert missing(replace(bare, file_name="libtinytorch-shared-with-deps-1.2.0+cpu.zip"))


# ------------------------------------------------------------------------------------- archive


@pytest.mark.slow
def test_more_members_than_a_plain_zip_can_count(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    with writing(path) as archive:
        archive.add(Member(f"{number:06}", b"") for number in range(70_000))
    with zipfile.ZipFile(path) as read:
        assert len(read.namelist()) == 70_000
        assert read.namelist()[-1] == "069999"
    run("unzip", "-qt", path)


@pytest.mark.slow
def test_a_member_larger_than_a_plain_zip_can_hold(tmp_path: Path) -> None:
    large, path = tmp_path / "large", tmp_path / "large.zip"
    size = (4 << 30) + 12_345
    with large.open("wb") as file:
        file.truncate(size)
    with writing(path) as archive:
        archive.add([Member("large", large), Member("small", b"s" * 99)])
    with zipfile.ZipFile(path) as read:
        assert [info.file_size for info in read.infolist()] == [size, 99]
        assert read.read("small") == b"s" * 99
    run("unzip", "-qt", path)
