"""With which torch releases an extension loads."""

import json
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import pytest
from packaging.specifiers import SpecifierSet
from tests.support.helpers import Command
from tests.support.made_elf import Made, make_elf
from tests.support.schemas import validate

from torchyard.checks.compat.extension import ExtensionWheel, read_extension
from torchyard.checks.compat.matrix import LoadVerdict, Obstacle, ObstacleKind, load_matrix
from torchyard.checks.compat.symbol_cache import load_symbols_file, save_symbols_file
from torchyard.checks.compat.table import load_compat_table
from torchyard.checks.torch_symbols import TorchSymbols, packed_digests, symbol_digest
from torchyard.errors import SelectionError, UsageError
from torchyard.features.compat import use_case
from torchyard.host.remote_file import RemoteFile
from torchyard.package.wheel.parts import WheelParts
from torchyard.smoke.outcome import Outcome, SmokeAttempt
from torchyard.terminal.progress import ProgressLine
from torchyard.toolchain import index_wheels
from torchyard.toolchain.index_wheels import IndexWheel
from torchyard.workspace import torch_releases
from torchyard.workspace.progress import no_meter
from torchyard.workspace.torch_releases import TorchRange, find_releases

ADD = "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_"
NEW = "_ZN3c104core9newerThanEv"
STRING = "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm"
SHIM = "torch_exception_get_what"
PLAIN = "THPVariableClass"


def torch(
    version: str, *symbols: str, toolkit: str = "CUDA 13", libraries: Sequence[str] = ()
) -> TorchSymbols:
    return TorchSymbols(
        file=f"torch-{version}-cp312-cp312-manylinux_2_28_x86_64.whl",
        version=version,
        libraries=("libc10.so", "libtorch_cpu.so", *libraries),
        toolkits=(toolkit,) if toolkit else (),
        digests=packed_digests(symbol_digest(name.encode()) for name in symbols),
    )


def module(
    *needs: str,
    needed: Sequence[str] = ("libtorch_cpu.so",),
    weak: Iterable[str] = (),
    has: Iterable[str] = (),
) -> bytes:
    symbols = [(name, 1, 0, 0) for name in needs] + [(name, 2, 0, 0) for name in weak]
    return make_elf(Made(needed=needed, symbols=[*symbols, *((name, 1, 0, 1) for name in has)]))


def write_wheel(
    folder: Path,
    members: dict[str, bytes],
    requires: Sequence[str] = ("torch>=2.10",),
    file: str = "demo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl",
) -> Path:
    name, version = file.split("-")[:2]
    lines = "".join(f"Requires-Dist: {line}\n" for line in requires)
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{lines}"
    path = folder / file
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}-{version}.dist-info/METADATA", about)
        for member, content in members.items():
            archive.writestr(member, content)
    return path


def read(path: Path) -> ExtensionWheel:
    return read_extension(WheelParts(RemoteFile(path.as_uri())))


class Verdict(Protocol):
    def __call__(
        self, content: bytes, newer: TorchSymbols, requires: Sequence[str] = ()
    ) -> LoadVerdict: ...


@pytest.fixture
def verdict(tmp_path: Path) -> Verdict:
    """Compare one module with a torch 2.14, and with a 2.13 that has everything."""

    def compare(content: bytes, newer: TorchSymbols, requires: Sequence[str] = ()) -> LoadVerdict:
        extension = read(write_wheel(tmp_path, {"demo/_C.so": content}, requires))
        older = torch("2.13.0", ADD, NEW, STRING, SHIM, PLAIN, "cudaMalloc", "PyList_New")
        return load_matrix(extension, [newer, older])[0]

    return compare


# ------------------------------------------------------------------------------- symbols


def test_it_loads_if_torch_has_all(verdict: Verdict) -> None:
    assert verdict(module(ADD, SHIM), torch("2.14.0", ADD, SHIM)).loads


@pytest.mark.parametrize("symbol", [ADD, SHIM, PLAIN, "_ZTIN3c105ErrorE", "aoti_torch_zeros"])
def test_a_symbol_that_only_torch_can_have_is_missing(verdict: Verdict, symbol: str) -> None:
    found = verdict(module(symbol, NEW), torch("2.14.0", NEW))
    (obstacle,) = found.obstacles
    assert obstacle == Obstacle(ObstacleKind.SYMBOL, "demo/_C.so", (symbol,))


@pytest.mark.parametrize("symbol", [STRING, "cudaMalloc", "PyList_New", "malloc", "__cxa_throw"])
def test_others_provide_what_an_older_torch_exported_too(verdict: Verdict, symbol: str) -> None:
    assert verdict(module(symbol), torch("2.14.0", ADD)).loads


def test_a_library_that_is_not_known_may_have_what_has_no_name_of_torch(verdict: Verdict) -> None:
    needed = ("libtorch_cpu.so", "libunheard.so.1")
    assert verdict(module(PLAIN, needed=needed), torch("2.14.0")).loads
    assert not verdict(module(ADD, needed=needed), torch("2.14.0")).loads


def test_weak_symbols_may_lack(verdict: Verdict) -> None:
    assert verdict(module(weak=[ADD]), torch("2.14.0")).loads


def test_what_another_library_of_the_wheel_has_is_there(tmp_path: Path) -> None:
    members = {
        "demo/_C.so": module(NEW, needed=("libdemo.so", "libtorch_cpu.so")),
        "demo/libdemo.so": module(ADD, has=[NEW]),
    }
    extension = read(write_wheel(tmp_path, members))
    assert load_matrix(extension, [torch("2.14.0", ADD)])[0].loads


@pytest.mark.parametrize(("major", "loads"), [(13, True), (14, False)])
def test_one_library_for_each_toolkit_is_enough(tmp_path: Path, major: int, loads: bool) -> None:
    """As bitsandbytes has them: it loads the one that fits."""
    members = {
        f"demo/libdemo_cuda{number}.so": module(needed=(f"libcudart.so.{number // 10}",))
        for number in (118, 124, 130)
    }
    extension = read(write_wheel(tmp_path, members, ()))
    (found,) = load_matrix(extension, [torch("2.14.0", toolkit=f"CUDA {major}")])
    assert found.loads == loads


def test_the_library_that_holds_the_pin_is_named(tmp_path: Path) -> None:
    members = {"demo/_C.so": module(ADD), "demo/other.so": module(ADD, NEW)}
    extension = read(write_wheel(tmp_path, members))
    (found,) = load_matrix(extension, [torch("2.14.0", ADD)])
    assert [(one.member, one.names) for one in found.obstacles] == [("demo/other.so", (NEW,))]


# -------------------------------------------------------------------- libraries, toolkits


def test_a_library_of_torch_may_be_missing(verdict: Verdict) -> None:
    content = module(ADD, needed=("libtorch_cpu.so", "libc10_cuda.so"))
    (obstacle,) = verdict(content, torch("2.14.0", ADD)).obstacles
    assert obstacle == Obstacle(ObstacleKind.LIBRARY, "demo/_C.so", ("libc10_cuda.so",))
    assert verdict(content, torch("2.14.0", ADD, libraries=["libc10_cuda.so"])).loads


@pytest.mark.parametrize("toolkit", ["CUDA 12", "CUDA 13", ""])
def test_another_cuda_is_an_obstacle(verdict: Verdict, toolkit: str) -> None:
    content = module(ADD, needed=("libtorch_cpu.so", "libcudart.so.12"))
    found = verdict(content, torch("2.14.0", ADD, toolkit=toolkit)).obstacles
    expected = [Obstacle(ObstacleKind.TOOLKIT, "demo/_C.so", ("libcudart.so.12",))]
    assert list(found) == (expected if toolkit == "CUDA 13" else [])


@pytest.mark.parametrize("line", ["nvidia-cuda-runtime-cu12", "cuda-toolkit==12.9.1"])
def test_wheels_of_another_cuda_are_an_obstacle(verdict: Verdict, line: str) -> None:
    found = verdict(module(ADD), torch("2.14.0", ADD), [line]).obstacles
    assert found == (Obstacle(ObstacleKind.TOOLKIT, "METADATA", ("CUDA 12",)),)
    assert verdict(module(ADD), torch("2.14.0", ADD), [f'{line}; extra == "gpu"']).loads


def test_a_runtime_within_the_wheel_is_its_own(tmp_path: Path) -> None:
    members = {
        "demo/_C.so": module(ADD, needed=("libtorch_cpu.so", "libcudart.so.12")),
        "demo.libs/libcudart.so.12": module(has=["cudaMalloc"], needed=()),
    }
    extension = read(write_wheel(tmp_path, members))
    assert load_matrix(extension, [torch("2.14.0", ADD)])[0].loads


# ----------------------------------------------------------------------------- metadata


@pytest.mark.parametrize(
    ("lines", "declared", "admits"),
    [
        ([], None, True),
        (["torch"], "", True),
        (["torch>=2.10", "torch<2.14"], ">=2.10,<2.14", False),
        (["Torch==2.14.*"], "==2.14.*", True),
        (['torch==1.0; extra == "old"', "torch ("], None, True),
    ],
)
def test_what_a_wheel_declares(
    tmp_path: Path, lines: list[str], declared: str | None, admits: bool
) -> None:
    extension = read(write_wheel(tmp_path, {"demo/_C.so": module(ADD)}, lines))
    assert extension.requires_torch == declared
    assert extension.admits("2.14.1+cu130") is admits


# ------------------------------------------------------------------------------- cache


def test_symbols_are_kept(tmp_path: Path) -> None:
    symbols = torch("2.14.0", ADD, NEW)
    path = tmp_path / "new" / "symbols"
    assert load_symbols_file(path) is None
    save_symbols_file(path, symbols)
    assert load_symbols_file(path) == symbols
    assert [one.name for one in path.parent.iterdir()] == ["symbols"]


def test_a_damaged_file_is_none(tmp_path: Path) -> None:
    path = tmp_path / "symbols"
    save_symbols_file(path, torch("2.14.0", ADD, NEW))
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert load_symbols_file(path) is None
        path.write_bytes(data[:place])
        assert load_symbols_file(path) is None


# ----------------------------------------------------------------------------- releases


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2.10..", ((2, 10), None)),
        ("2.10..2.13", ((2, 10), (2, 13))),
        ("..2.13", (None, (2, 13))),
        ("2.13", ((2, 13), (2, 13))),
    ],
)
def test_ranges(text: str, found: tuple[object, object]) -> None:
    assert TorchRange.parse(text) == found


@pytest.mark.parametrize("text", ["", "..", "2", "2.10.", "2.13..2.10", "2.102.13", "new.."])
def test_no_ranges(text: str) -> None:
    with pytest.raises(UsageError, match="is not a range of torch releases"):
        TorchRange.parse(text)


INDEX = ("1.13.1", "2.0.0", "2.0.1", "2.1.0", "2.1.2", "2.3.0", "3.0.0", "3.1.0", "3.1.1")


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(requirement: str, python: str, machine: str) -> IndexWheel | None:
        versions = SpecifierSet(requirement.removeprefix("torch"))
        found = [version for version in INDEX if version in versions]
        return IndexWheel(name="torch", file="", version=found[-1], url="") if found else None

    monkeypatch.setattr(index_wheels, "find_wheel", find)


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize(
    ("text", "most", "found"),
    [
        ("", 2, ["3.1.1", "3.0.0"]),
        ("", 4, ["3.1.1", "3.0.0", "2.3.0", "2.1.2"]),
        ("2.1..", 6, ["3.1.1", "3.0.0", "2.3.0", "2.1.2"]),
        ("2.0..2.1", 6, ["2.1.2", "2.0.1"]),
        ("..2.1", 2, ["2.1.2", "2.0.1"]),
        ("2.3", 6, ["2.3.0"]),
        ("1.0..2.0", 6, ["2.0.1", "1.13.1"]),
        ("", 99, ["3.1.1", "3.0.0", "2.3.0", "2.1.2", "2.0.1", "1.13.1"]),
    ],
)
def test_the_last_patch_of_each_minor_version(text: str, most: int, found: list[str]) -> None:
    asked = TorchRange.parse(text) if text else TorchRange()
    wheels = find_releases(asked, "3.12", "x86_64", most, no_meter)
    assert [wheel.version for wheel in wheels] == found


@pytest.mark.usefixtures("index")
def test_progress_counts_releases() -> None:
    """They were counted in bytes: `67% of 6 B`."""
    lines: list[str] = []

    class Noted(ProgressLine):
        def __exit__(self, *_: object) -> None:
            lines.append(str(self))

    find_releases(TorchRange(), "3.12", "x86_64", 4, Noted)
    assert lines == ["100% of 4 releases, asking the index for torch"]


@pytest.mark.usefixtures("index")
def test_an_index_without_them() -> None:
    with pytest.raises(SelectionError, match="no such torch"):
        find_releases(TorchRange.parse("3.2.."), "3.12", "x86_64", 6, no_meter)


@pytest.mark.parametrize(
    ("offers", "local", "found"),
    [
        (("2.13.0", "2.13.0+cpu"), "", "2.13.0"),
        (("2.13.0", "2.13.1+cpu"), "", "2.13.0"),
        (("2.13.0", "2.13.0+cpu", "2.13.0+cu130"), "cpu", "2.13.0+cpu"),
        (("2.13.0", "2.13.0+cpu"), "cu126", "2.13.0"),
        (("2.12.0", "2.13.0+cpu"), "", "2.13.0+cpu"),
    ],
)
def test_a_wheel_for_one_compute_platform_does_not_stand_for_a_release(
    monkeypatch: pytest.MonkeyPatch, offers: tuple[str, ...], local: str, found: str
) -> None:
    """As wheels `+cpu` in uv's find-links, which are newer by their versions."""

    def find(requirement: str, python: str, machine: str) -> IndexWheel | None:
        versions = SpecifierSet(requirement.removeprefix("torch"))
        fitting = [version for version in offers if version in versions]
        return IndexWheel(name="torch", file="", version=fitting[-1], url="") if fitting else None

    monkeypatch.setattr(index_wheels, "find_wheel", find)
    wheels = find_releases(TorchRange.parse("2.13"), "3.12", "x86_64", 6, no_meter, local=local)
    assert [wheel.version for wheel in wheels] == [found]


# ----------------------------------------------------------------------------- command


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Offer two torch releases, of which the newer one has CUDA 13, and another symbol."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wheels = {}
    for version, symbols, major in (("2.13.0", [ADD], 12), ("2.14.1", [ADD, NEW], 13)):
        file = f"torch-{version}-cp312-cp312-manylinux_2_28_x86_64.whl"
        members = {
            "torch/lib/libtorch_cpu.so": module(has=symbols, needed=("libc10.so",)),
            "torch/lib/libc10_cuda.so": module(needed=(f"libcudart.so.{major}",)),
            "torch/lib/libgomp.so.1": module(has=["other"]),
        }
        path = write_wheel(tmp_path, members, (), file)
        wheels[version] = IndexWheel(name="torch", file=file, version=version, url=path.as_uri())
    monkeypatch.setattr(
        torch_releases, "find_releases", lambda *_, **__: [wheels["2.14.1"], wheels["2.13.0"]]
    )
    monkeypatch.setattr(
        "torchyard.features.compat.use_case.find_releases", torch_releases.find_releases
    )
    return tmp_path


def test_a_wheel_that_promises_too_much(torchyard: Command, offered: Path) -> None:
    path = write_wheel(offered, {"demo/_C.so": module(ADD, NEW)})
    done = torchyard("compat", path)
    assert done.code == 13
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "2.14.1 CUDA 13 yes" in lines
    assert "2.13.0 CUDA 12 no _C.so needs c10::core::newerThan()" in lines
    assert "declares torch>=2.10" in lines
    assert "its metadata are wrong: they admit 2.13.0" in lines
    assert "exclude torch 2.13.0 in its Requires-Dist" in done.err


def test_what_nothing_defines_is_not_a_matter_of_torch(torchyard: Command, offered: Path) -> None:
    path = write_wheel(offered, {"demo/_C.so": module(ADD, "_ZN7fastops10fast_tableEi", needed=())})
    done = torchyard("compat", path)
    assert done.code == 13
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "loads with none of torch 2.13.0 to 2.14.1" in lines
    assert "it loads with no torch: symbols that it needs are undefined" in lines
    assert "loads with no torch" in done.err


@pytest.mark.parametrize("symbol", ["_ZN7fastops10fast_tableEi", "fast_table"])
def test_what_no_torch_exports_is_missing(torchyard: Command, offered: Path, symbol: str) -> None:
    path = write_wheel(offered, {"demo/_C.so": module(ADD, symbol)})
    done = torchyard("compat", path)
    assert done.code == 13
    assert "2.14.1 CUDA 13 no _C.so needs fast" in " ".join(done.out.split())


def test_what_fails_when_tried_is_refuted(
    torchyard: Command, offered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {
        "2.14.1": SmokeAttempt(test="load", outcome=Outcome.CRASHED, why="killed by SIGSEGV"),
        "2.13.0": SmokeAttempt(test="load", outcome=Outcome.NOT_RUN, why="there is no Python"),
    }
    monkeypatch.setattr(use_case, "load_beside_torch", lambda _wheel, torch, *_: found[torch])
    monkeypatch.setattr(use_case, "read_package_under_test", lambda path: path)
    path = write_wheel(offered, {"demo/_C.so": module(ADD)})
    done = torchyard("compat", path, "--run")
    assert done.code == 13
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "torch brings loads tried why not" in lines
    assert "2.14.1 CUDA 13 yes no when tried: killed by SIGSEGV" in lines
    assert "2.13.0 CUDA 12 yes – when tried: there is no Python" in lines
    assert "its metadata are wrong: they admit 2.14.1" in lines
    assert "beside torch 2.14.1 crashed: killed by SIGSEGV" in done.err
    document = json.loads(torchyard("compat", path, "--run", "--json").out)
    validate(document, "compat")


def test_a_wheel_that_tells_the_truth(torchyard: Command, offered: Path) -> None:
    path = write_wheel(offered, {"demo/_C.so": module(ADD, NEW)}, ["torch>=2.14"])
    done = torchyard("compat", path, "--json")
    assert done.code == 0
    document = json.loads(done.out)
    validate(document, "compat")
    (wheel,) = document["wheels"]
    assert wheel["loads"] == ["2.14.1"]
    assert wheel["refuted"] == wheel["unclaimed"] == []
    assert [one["names"] for one in wheel["releases"][1]["obstacles"]] == [[NEW]]


def test_a_torch_may_be_a_wheel(torchyard: Command, offered: Path) -> None:
    """It is read each time: a new build has the name of the last one."""
    name = "torch-2.15.0+cpu-cp312-cp312-linux_x86_64.whl"
    path = write_wheel(offered, {"demo/_C.so": module(ADD)}, ())
    for symbol, code in ((NEW, 13), (ADD, 0)):
        built = write_wheel(offered, {"torch/lib/libtorch_cpu.so": module(has=[symbol])}, (), name)
        done = torchyard("compat", path, "--torch", built)
        assert done.code == code, done.err
        assert "2.15.0+cpu" in done.out


@pytest.mark.parametrize(
    ("torch", "more", "told"),
    [
        ("torch-2.15.0-cp313-cp313-linux_x86_64.whl", (), "is for another Python or machine"),
        ("torch-2.15.0-cp312-cp312-linux_aarch64.whl", (), "is for another Python or machine"),
        ("torch-2.15.0-cp312-cp312-linux_x86_64.whl", ("--run",), "not a wheel"),
        ("demo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl", (), "has no libraries of torch"),
    ],
)
def test_a_torch_that_can_not_be_compared(
    torchyard: Command, offered: Path, torch: str, more: tuple[str, ...], told: str
) -> None:
    write_wheel(offered, {"torch/lib/libtorch_cpu.so": module(has=[ADD])}, (), torch)
    path = write_wheel(offered, {"demo/_C.so": module(ADD)})
    done = torchyard("compat", path, "--torch", offered / torch, *more)
    assert done.code == 2
    assert told in done.err


def test_torch_is_read_once(torchyard: Command, offered: Path) -> None:
    path = write_wheel(offered, {"demo/_C.so": module(ADD)})
    assert torchyard("compat", path).code == 0
    for wheel in offered.glob("torch-*.whl"):
        wheel.unlink()
    assert torchyard("compat", path).code == 0


@pytest.mark.parametrize("columns", [60, 80])
def test_the_report_fits(
    torchyard: Command, offered: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    long = "_ZN2at" + "".join(f"{len(word)}{word}" for word in ["namespace"] * 30) + "Ev"
    path = write_wheel(offered, {"demo/_C.cpython-312-x86_64-linux-gnu.so": module(ADD, NEW, long)})
    monkeypatch.setenv("COLUMNS", str(columns))
    out = torchyard("compat", path).out
    assert max(map(len, out.splitlines())) <= columns
    assert "2.14.1  CUDA 13  no" in out


@pytest.mark.parametrize(
    ("place", "code", "told"),
    [
        ("demo-1.0-cp312-cp312-win_amd64.whl", 2, "only wheels for Linux"),
        ("missing-1.0-cp312-cp312-manylinux_2_28_x86_64.whl", 7, "404"),
        ("what is this", 2, "nor a project with a version"),
    ],
)
def test_what_can_not_be_compared(
    torchyard: Command, offered: Path, place: str, code: int, told: str
) -> None:
    if "win" in place:
        write_wheel(offered, {}, (), place)
    done = torchyard("compat", offered / place if place.endswith(".whl") else place)
    assert done.code == code
    assert told in done.err


def test_abi_classes_alone(torchyard: Command, tmp_path: Path) -> None:
    wheels = [
        write_wheel(tmp_path, {"demo/_C.so": module(SHIM)}, file=f"demo-1.0-{tags}.whl")
        for tags in (
            "cp311-cp311-manylinux_2_28_x86_64",
            "cp312-cp312-manylinux_2_28_x86_64",
            "cp312-cp312-win_amd64",
        )
    ]
    done = torchyard("compat", "--abi", *wheels)
    assert done.code == 0
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert f"{wheels[2].name} both any Python torch 2.13 or newer" in lines
    assert lines[-1] == "3 wheels; as their symbols allow, 2 would do"
    assert "all of them needed" in torchyard("compat", "--abi", *wheels[1:]).out
    document = json.loads(torchyard("compat", "--abi", "--json", *wheels).out)
    assert document["builds"] == 2
    assert document["wheels"][0]["abi"]["torch"]["floor"] == "2.13"
    assert torchyard("compat", "--abi", "--torch", "2.13..", wheels[0]).code == 2


def test_all_wheels_of_a_release(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"demo-1.0-{python}-{python}-win_amd64.whl" for python in ("cp311", "cp312")]
    wheels = [
        write_wheel(tmp_path, {"demo/_C.so": module(SHIM, PLAIN)}, file=name) for name in names
    ]
    rows = ", ".join(f'{{ url = "{wheel.as_uri()}" }}' for wheel in wheels)
    lock = f'[[packages]]\nname = "demo"\nversion = "1.0"\nwheels = [{rows}]\n'

    def call(words: Sequence[str]) -> None:
        assert "--universal" in words
        Path(words[-1]).write_text(lock, encoding="utf-8")

    monkeypatch.setattr(index_wheels, "call_uv", call)
    done = torchyard("compat", "--abi", "demo==1.0")
    assert [name in done.out for name in names] == [True, True]


def test_a_wheel_without_libraries_loads_anywhere(torchyard: Command, offered: Path) -> None:
    done = torchyard("compat", write_wheel(offered, {"demo/a.py": b""}))
    assert done.code == 2
    assert "has no libraries" in done.err


def test_the_table_is_valid() -> None:
    table = load_compat_table()
    assert msgspec.structs.asdict(table)["releases"] == 6
    assert table.is_torchs(ADD)
    assert not table.is_torchs(STRING)
