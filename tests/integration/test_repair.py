"""Repairing packages of real libraries: changed, installed, loaded; and archives beyond 4 GB."""

import csv
import io
import os
import platform
import shutil
import signal
import struct
import subprocess
import sys
import time
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import pytest
from tests.support.libraries import Built, build, compile_library, run

from torchyard.errors import BuildError, HostError, SelectionError, UsageError
from torchyard.host.machine import python_name
from torchyard.host.own_files import STAMP
from torchyard.package.elf.edit import Rewrite, rewrite
from torchyard.package.elf.file import Elf, read_elf, section_names
from torchyard.package.read import read_package
from torchyard.package.repair.operations import (
    Bundle,
    Operation,
    ReplaceNeeded,
    Retag,
    Reversion,
    SetRpath,
    Strip,
)
from torchyard.package.repair.repair import Repaired, repair
from torchyard.package.sbom.component import SBOM_FILE, Bill
from torchyard.package.sbom.cyclonedx import carried_bill, encode_bill
from torchyard.package.zip.directory import read_directory

pytestmark = pytest.mark.integration

TAG = f"{python_name()}-{python_name()}-linux_{platform.machine()}"
HOME = "tinytorch-1.2.0+cpu.dist-info"
CODE = "import tinytorch; print(tinytorch.answer)"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def wheel(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel as a careless backend leaves it: no rpaths, nothing brought along."""
    image = tmp_path_factory.mktemp("wheel") / "image"
    shutil.copytree(built.image, image)
    home = (image / "tinytorch-0.dist-info").rename(image / HOME)
    text = "Metadata-Version: 2.1\nName: tinytorch\nVersion: 1.2.0+cpu\n"
    (home / "METADATA").write_text(text, encoding="utf-8")
    text = f"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    (home / "WHEEL").write_text(text, encoding="utf-8")
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerows(
        row(path.relative_to(image).as_posix(), path.read_bytes())
        for path in sorted(image.rglob("*"))
        if path.is_file()
    )
    (home / "RECORD").write_text(f"{rows.getvalue()}{HOME}/RECORD,,\n", encoding="utf-8")
    path = image.parent / f"tinytorch-1.2.0+cpu-{TAG}.whl"
    zip_folder(image, path)
    return path


def row(name: str, data: bytes) -> tuple[str, str, int]:
    digest = urlsafe_b64encode(sha256(data).digest()).decode().rstrip("=")
    return name, f"sha256={digest}", len(data)


def zip_folder(folder: Path, path: Path, top: str = "") -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, top + file.relative_to(folder).as_posix())


def do(package: Path, out: Path, *operations: Operation) -> Repaired:
    done = repair(package, operations, out)
    with done.path.open("rb") as file:
        assert not read_directory(file).faults
    if done.path.suffix == ".whl":
        check_record(done.path)
    return done


def check_record(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        listed = {r[0]: tuple(r) for r in csv.reader(io.StringIO(archive.read(name).decode()))}
        files = [n for n in archive.namelist() if not n.endswith("/") and n != name]
        assert sorted(listed) == sorted([*files, name])
        for file in files:
            assert listed[file] == tuple(map(str, row(file, archive.read(file))))


def unpacked(path: Path, to: Path) -> Path:
    run("unzip", "-q", path, "-d", to)
    return to


def elf_of(path: Path) -> Elf:
    elf = read_elf(path)
    assert elf is not None
    return elf


def answer_of(wheel: Path, folder: Path) -> str:
    """Install a wheel, import it with nothing around that could help, and let it answer."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir")
    run(*pip, "install", "--no-deps", "--no-index", "-q", "--target", folder, wheel)
    env = {"PYTHONPATH": str(folder), "PATH": os.environ["PATH"]}
    return run(sys.executable, "-c", CODE, env=env)


# ---------------------------------------------------------------------------------- operations


def test_a_wheel_that_does_not_load_is_mended(built: Built, wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="cannot open shared object file"):
        answer_of(wheel, tmp_path / "broken")
    done = do(wheel, tmp_path / "out", SetRpath(), Bundle(folders=(tmp_path, built.vendor)))
    assert answer_of(done.path, tmp_path / "site") == "42\n"
    site = tmp_path / "site/tinytorch"
    digest = sha256((built.vendor / "libvend.so.2").read_bytes()).hexdigest()[:8]
    assert elf_of(site / f"lib/libvend-{digest}.so.2").soname == f"libvend-{digest}.so.2"
    assert (site / "lib/libgomp.so.1").exists()  # others look for it by its name
    assert not list(site.glob("lib/*unused*"))
    assert elf_of(site / "_C.so").runpath == "$ORIGIN:$ORIGIN/lib"
    assert subprocess.run([site / "bin/tool"], check=False, env={}).returncode == 42
    names = zipfile.ZipFile(done.path).namelist()
    brought = [i for i, name in enumerate(names) if "libvend-" in name or "libgomp" in name]
    assert max(brought) < min(i for i, name in enumerate(names) if name.startswith(HOME))
    changed = {change.member: change.what for change in done.changed}
    assert changed[f"tinytorch/lib/libvend-{digest}.so.2"] == "brought along: libvend.so.2"


def test_what_is_brought_along_is_found_without_another_option(
    built: Built, wheel: Path, tmp_path: Path
) -> None:
    mended = do(wheel, tmp_path / "one", SetRpath()).path
    done = do(mended, tmp_path / "two", Bundle(folders=(built.vendor,)))
    assert answer_of(done.path, tmp_path / "site") == "42\n"
    changed = {change.member for change in done.changed}
    assert "tinytorch/lib/libtiny.so" in changed
    assert not changed & {"tinytorch/_C.so", "tinytorch/lib/libc10.so"}
    again = do(done.path, tmp_path / "three", Bundle(folders=(built.vendor,)))
    assert again.changed == ()


def test_a_library_whose_own_needs_are_not_there_is_refused(
    built: Built, wheel: Path, tmp_path: Path
) -> None:
    vendor = tmp_path / "vendor"
    vendor.mkdir()
    shutil.copy(built.vendor / "libvend.so.2", vendor)
    with pytest.raises(BuildError, match=r"libvend-.* needs `libdeep.so.1`, which is neither"):
        repair(wheel, [Bundle(folders=(vendor,))], tmp_path / "out")
    assert not list(tmp_path.glob("out/*"))


def test_a_library_that_is_in_none_of_the_directories_is_told(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = do(wheel, tmp_path / "out", Bundle(folders=(tmp_path / "empty",)))
    assert f"libvend.so.2 is needed, and not in {tmp_path}/empty" in done.notes
    assert not any("libc.so.6" in note or "libc10.so" in note for note in done.notes)


@pytest.mark.parametrize("needed", ["libcudart.so.13", "libcudart.so.11.0", "libamdhip64.so.7"])
def test_what_needs_a_gpu_must_say_what_it_is_compiled_for(
    wheel: Path, tmp_path: Path, needed: str
) -> None:
    path = tmp_path / wheel.name.replace("+cpu", "")
    shutil.copy(wheel, path)
    assert do(path, tmp_path / "cpu", SetRpath()).changed
    wants = ReplaceNeeded(new=needed, members=("*/_C.so",))
    path = repair(path, [wants], tmp_path / "gpu").path
    with pytest.raises(UsageError, match="does not show the package's compute platform"):
        repair(path, [SetRpath()], tmp_path / "out")
    assert repair(path, [SetRpath()], tmp_path / "out", compute="cu130").changed


def test_an_extension_finds_torchs_libraries_in_the_process(
    built: Built, wheel: Path, tmp_path: Path
) -> None:
    path = tmp_path / wheel.name.replace("+cpu", "")
    shutil.copy(wheel, path)
    needs = ("libtorch_cpu.so", "libcudart.so.13")
    path = repair(
        path, [ReplaceNeeded(new=name, members=("*/_C.so",)) for name in needs], tmp_path / "ext"
    ).path
    folder = tmp_path / "torch"
    folder.mkdir()
    for name in needs:
        shutil.copy(built.vendor / "libvend.so.2", folder / name)
    done = do(path, tmp_path / "out", SetRpath(), Bundle(folders=(folder, built.vendor)))
    site = unpacked(done.path, tmp_path / "site")
    brought = {file.name.partition("-")[0] for file in site.glob("tinytorch.libs/*")}
    assert brought == {"libvend", "libdeep"}
    assert (
        elf_of(site / "tinytorch/_C.so").runpath == "$ORIGIN:$ORIGIN/../tinytorch.libs:$ORIGIN/lib"
    )
    assert not any(name in note for note in done.notes for name in needs)
    again = do(done.path, tmp_path / "again", SetRpath())
    assert again.changed == ()


def test_only_what_changes_is_packed_anew(wheel: Path, tmp_path: Path) -> None:
    member = "tinytorch/lib/libtiny.so"
    done = do(wheel, tmp_path, SetRpath(value="$ORIGIN/a:$ORIGIN", members=("*/libtiny.so",)))
    assert [change.member for change in done.changed] == [member]
    assert done.changed[0].what == "runpath none → $ORIGIN/a:$ORIGIN"
    before, after = stored(wheel), stored(done.path)
    assert before.keys() == after.keys()
    assert {n for n in before if before[n] != after[n]} == {member, f"{HOME}/RECORD"}
    path = unpacked(done.path, tmp_path / "site") / member
    assert elf_of(path).runpath == "$ORIGIN/a:$ORIGIN"


def stored(path: Path) -> dict[str, bytes]:
    data = path.read_bytes()
    with path.open("rb") as file:
        return {e.name: data[e.header : e.end] for e in read_directory(file).entries}


def test_the_kind_of_an_rpath_is_kept(wheel: Path, tmp_path: Path) -> None:
    folder = unpacked(wheel, tmp_path / "image")
    rewrite(folder / "tinytorch/_C.so", Rewrite(rpath="/old", force_rpath=True))
    path = tmp_path / wheel.name
    zip_folder(folder, path)
    done = repair(path, [SetRpath(value="/new", members=("*/_C.so",))], tmp_path / "out")
    elf = elf_of(unpacked(done.path, tmp_path / "site") / "tinytorch/_C.so")
    assert (elf.rpath, elf.runpath) == ("/new", "")


def test_needed_libraries_are_replaced_removed_and_added(wheel: Path, tmp_path: Path) -> None:
    tiny = ("tinytorch/lib/libtiny.so",)
    done = do(
        wheel,
        tmp_path,
        ReplaceNeeded(old="libvend.so.2", new="libother.so.3"),
        ReplaceNeeded(old="libgomp.so.1"),
        ReplaceNeeded(new="libmore.so", members=tiny),
    )
    needed = elf_of(unpacked(done.path, tmp_path / "site") / tiny[0]).needed
    assert set(needed) == {"libmore.so", "libc10.so", "libother.so.3", "libc.so.6"}
    told = "needs libmore.so, libother.so.3 instead of libvend.so.2, libgomp.so.1"
    assert told in {change.what for change in done.changed}


def test_debug_information_is_taken_out_and_kept(built: Built, wheel: Path, tmp_path: Path) -> None:
    bundle = Bundle(folders=(built.vendor,))
    done = do(wheel, tmp_path / "out", Strip(), SetRpath(), bundle)
    assert answer_of(done.path, tmp_path / "site") == "42\n"
    for path in tmp_path.glob("site/tinytorch/lib/lib*.so"):
        assert not any(name.startswith(".debug") for name in section_names(path))
    assert done.debug is not None
    debug = unpacked(done.debug, tmp_path / "debug") / "tinytorch/lib/libc10.so.debug"
    assert ".debug_info" in section_names(debug)
    assert any("stripped of debug information, " in change.what for change in done.changed)


def test_the_bill_of_materials_follows(built: Built, wheel: Path, tmp_path: Path) -> None:
    folder = unpacked(wheel, tmp_path / "image")
    bill = Bill(name="tinytorch", version="1.2.0+cpu", purl="pkg:pypi/tinytorch@1.2.0%2Bcpu")
    document = folder / HOME / "sboms" / SBOM_FILE
    document.parent.mkdir(exist_ok=True)
    document.write_bytes(encode_bill(bill))
    path = tmp_path / wheel.name
    zip_folder(folder, path)
    done = do(path, tmp_path / "out", SetRpath(), Bundle(folders=(built.vendor,)))
    done = do(done.path, tmp_path / "renamed", Reversion(local="mine"))
    found = carried_bill(read_package(done.path))
    assert found is not None
    assert (found.version, found.purl) == ("1.2.0+mine", "pkg:pypi/tinytorch@1.2.0%2Bmine")
    inside = {name.rpartition("/")[2] for name in read_package(done.path).files}
    listed = {part.name: part.files for part in found.components}
    assert listed.keys() >= {"libvend.so.2"}
    assert {file for files in listed.values() for file in files} <= inside


def test_a_symbol_table_is_no_debug_information(tmp_path: Path) -> None:
    library = compile_library(tmp_path / "image/libx.so", "static int x; int y() { return x; }")
    run("strip", "--strip-debug", library)
    path = tmp_path / "libx-1.0+cpu.zip"
    zip_folder(library.parent, path, "libx/lib/")
    done = repair(path, [Strip()], tmp_path / "out")
    assert done.debug is None
    assert done.changed[0].what.startswith("stripped of its symbol table, ")


def test_debug_information_lies_where_its_library_will(built: Built, tmp_path: Path) -> None:
    path = tmp_path / f"tinytorch-1.2.0+cpu-{TAG}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(built.install / "lib/libc10.so", "tinytorch-1.2.0+cpu.data/platlib/a.so")
        archive.writestr(f"{HOME}/METADATA", "Version: 1.2.0+cpu\n")
        archive.writestr(f"{HOME}/RECORD", "")
    done = repair(path, [Strip(), Reversion(local="cu130")], tmp_path / "out")
    assert done.debug is not None
    names = zipfile.ZipFile(done.debug).namelist()
    assert names == ["tinytorch-1.2.0+cu130.data/platlib/a.so.debug"]


def test_files_that_others_rearranged_survive_being_stripped(
    built: Built, wheel: Path, tmp_path: Path
) -> None:
    long = ":".join(f"$ORIGIN/{number:050}" for number in range(200))
    first = do(wheel, tmp_path / "one", SetRpath(value=long)).path
    bundle = Bundle(folders=(built.vendor,))
    second = do(first, tmp_path / "two", Strip(), SetRpath(), bundle).path
    assert answer_of(second, tmp_path / "site") == "42\n"


@pytest.mark.parametrize("top", ["libtiny/", ""])
def test_a_zip_is_mended(built: Built, tmp_path: Path, top: str) -> None:
    path = tmp_path / "libtiny-shared-with-deps-1.2.0+cpu.zip"
    zip_folder(built.install, path, top)
    done = do(path, tmp_path / "out", SetRpath(), Bundle(folders=(built.vendor,)))
    home = unpacked(done.path, tmp_path / "there") / top
    home = home.rename(tmp_path / "elsewhere")
    assert subprocess.run([home / "bin/tool"], check=False, env={}).returncode == 42
    assert elf_of(home / "bin/tool").runpath == "$ORIGIN:$ORIGIN/../lib"


def test_a_zip_may_be_a_single_library(built: Built, tmp_path: Path) -> None:
    path = tmp_path / "libc10-1.0+cpu.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(built.install / "lib/libc10.so", "libc10.so")
    done = do(path, tmp_path / "out", SetRpath())
    assert elf_of(unpacked(done.path, tmp_path / "there") / "libc10.so").runpath.startswith("$ORI")


def test_everything_at_once_gives_the_same_bytes(built: Built, wheel: Path, tmp_path: Path) -> None:
    operations: list[Operation] = [
        Retag(platform=f"manylinux_2_28_{platform.machine()}"),
        Reversion(local="cu130"),
        Strip(),
        SetRpath(),
        Bundle(folders=(built.vendor,)),
    ]
    first = do(wheel, tmp_path / "a", *operations)
    second = do(wheel, tmp_path / "b", *operations)
    assert first.path.name.startswith("tinytorch-1.2.0+cu130-")
    assert first.path.read_bytes() == second.path.read_bytes()
    assert first.debug is not None
    assert second.debug is not None
    assert first.debug.read_bytes() == second.debug.read_bytes()


def test_a_glob_for_something_else_is_told(wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(SelectionError, match=r"of the package matches `tinytorch/__init__\.py`"):
        repair(wheel, [Strip(members=("tinytorch/__init__.py",))], tmp_path / "out")


def test_a_library_that_tools_refuse_leaves_nothing(tmp_path: Path) -> None:
    library = compile_library(tmp_path / "image/libx.so", "int x;")
    data = bytearray(library.read_bytes())
    data[18:20] = struct.pack("<H", 0xBEEF)  # a machine that there is not
    library.write_bytes(data)
    path = tmp_path / "libx-1.0+cpu.zip"
    zip_folder(library.parent, path, "libx/lib/")
    with pytest.raises(HostError, match="strip"):
        repair(path, [Strip()], tmp_path / "out")
    assert not list(tmp_path.glob("out/*"))


# ----------------------------------------------------------------------------- kills and sizes


def test_a_kill_leaves_nothing_with_a_name(tmp_path: Path) -> None:
    path = tmp_path / "libx-1.0+cpu.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("libx/build-version", "1.0+cpu\n")
        with archive.open("libx/zeros", "w") as file:
            for _ in range(600):
                file.write(bytes(1 << 20))
    out = tmp_path / "out"
    options = ("-o", str(out), "--local", "none", "--no-check")
    command = [sys.executable, "-m", "torchyard", "repair", str(path), *options]
    child = subprocess.Popen(command)
    while not list(out.glob(".*/.*.part")) and child.poll() is None:
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    left = sorted(file.name for file in out.iterdir())
    assert left == [".libx-1.0.zip.lock", ".libx-1.0.zip.repair", STAMP]
    run(*command)
    assert sorted(file.name for file in out.iterdir()) == [STAMP, "libx-1.0.zip"]


@pytest.mark.slow
def test_archives_beyond_4_gb(tmp_path: Path) -> None:
    size = (4 << 30) + 4321
    path = sparse_zip(tmp_path / "libx-1.0+cpu.zip", size)
    done = do(path, tmp_path / "out", Reversion(local="cu130"))
    with zipfile.ZipFile(done.path) as archive:
        assert archive.read("libx/build-version") == b"1.0+cu130\n"
        assert archive.read("libx/last") == b"last"
        large = archive.getinfo("libx/zeros")
        assert (large.file_size, large.compress_size, large.CRC) == (size, size, zeros(size))
        assert archive.getinfo("libx/last").header_offset > 4 << 30
    run("unzip", "-qt", done.path)


def zeros(size: int) -> int:
    crc, block = 0, bytes(1 << 24)
    for start in range(0, size, len(block)):
        crc = crc32(block[: size - start], crc)
    return crc


def sparse_zip(path: Path, size: int) -> Path:
    """An archive with a member that is stored, over 4 GB, and takes no room on the disk."""
    with path.open("wb") as file:
        rows = []
        for name, data in (
            (b"libx/zeros", None),
            (b"libx/build-version", b"1.0+cpu\n"),
            (b"libx/last", b"last"),
        ):
            offset = file.tell()
            crc, length = (zeros(size), size) if data is None else (crc32(data), len(data))
            wide = struct.pack("<HHQQ", 1, 16, length, length) if data is None else b""
            short = 0xFFFFFFFF if data is None else length
            shared = struct.pack("<HHHHHIIIH", 45, 0, 0, 0, 33, crc, short, short, len(name))
            file.write(b"PK\3\4" + shared + struct.pack("<H", len(wide)) + name + wide)
            if data is None:
                file.seek(size, os.SEEK_CUR)
            else:
                file.write(data)
                wide = struct.pack("<HHQ", 1, 8, offset)
            place = 0 if data is None else 0xFFFFFFFF
            about = struct.pack("<HHHHII", len(wide), 0, 0, 0, 0o100644 << 16, place)
            rows.append(b"PK\1\2" + struct.pack("<H", 3 << 8 | 45) + shared + about + name + wide)
        start, listed = file.tell(), b"".join(rows)
        file.write(listed)
        numbers = (3, 3, len(listed), start)
        file.write(struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, *numbers))
        file.write(struct.pack("<4sIQI", b"PK\6\7", 0, start + len(listed), 1))
        file.write(struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 3, 3, len(listed), 0xFFFFFFFF, 0))
    return path


@pytest.mark.slow
def test_a_member_that_unpacks_to_more_than_4_gb(tmp_path: Path) -> None:
    path = tmp_path / "libx-1.0+cpu.zip"
    size = (4 << 30) + 99
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        info = zipfile.ZipInfo("libx/zeros")
        info.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(info, "w", force_zip64=True) as file:
            for start in range(0, size, 1 << 24):
                file.write(bytes(min(1 << 24, size - start)))
        archive.writestr("libx/build-version", "1.0+cpu\n")
    done = do(path, tmp_path / "out", Reversion(local="cu130"))
    with zipfile.ZipFile(done.path) as archive:
        assert archive.getinfo("libx/zeros").file_size == size
        assert archive.read("libx/build-version") == b"1.0+cu130\n"


@pytest.mark.slow
def test_a_real_torch_wheel(torch_wheel: Path, tmp_path: Path) -> None:
    """Other labels for torch, which pip takes, and all of which is listed as it is."""
    labels = (Retag(platform=f"linux_{platform.machine()}"), Reversion(version="99.0+test"))
    done = do(torch_wheel, tmp_path, *labels)
    before, after = (zipfile.ZipFile(path).infolist() for path in (torch_wheel, done.path))
    kept = [
        (old.CRC, old.compress_size, old.date_time) == (new.CRC, new.compress_size, new.date_time)
        for old, new in zip(before, after, strict=True)
    ]
    assert kept.count(False) == 4  # METADATA, WHEEL, RECORD, version.py
    options = ("install", "--dry-run", "--no-deps", "--no-index", "--ignore-installed")
    said = run(sys.executable, "-m", "pip", *options, done.path)
    assert "Would install torch-99.0+test" in said
