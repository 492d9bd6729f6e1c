"""ABI classes of extensions that a compiler made, and of published wheels."""

import subprocess
import sysconfig
import zipfile
from pathlib import Path

import msgspec
import pytest
from tests.support.helpers import ROOT, Command

from torchyard.features.compat.report import ComparedWheel, CompatReport
from torchyard.host.network_settings import fetching_environment
from torchyard.host.process import own_program

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TORCH = "2.13.0"
STABLE = ROOT / "tests/projects/tinyext/csrc/twice.cpp"
PLATFORM = "manylinux_2_39_x86_64"
FULL_MODULE = """\
#include <Python.h>
static PyObject *same(PyObject *self, PyObject *text) {
#ifdef Py_LIMITED_API
  return PyObject_Str(text);
#else
  return PyUnicode_FromString(PyUnicode_AsUTF8(text));
#endif
}
static PyMethodDef methods[] = {{"same", same, METH_O, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", 0, -1, methods};
PyMODINIT_FUNC PyInit__C(void) { return PyModule_Create(&module); }
"""
FULL_TORCH = """\
#include <ATen/ops/add.h>
#include <torch/library.h>
at::Tensor twice(const at::Tensor& given) { return at::add(given, given); }
TORCH_LIBRARY(tiny, m) { m.def("twice", &twice); }
"""
LIMITED = "-DPy_LIMITED_API=0x030a0000"


def target(minor: int) -> str:
    return f"-DTORCH_TARGET_VERSION=0x02{minor:02x}000000000000"


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The folders with the headers of a torch, which is installed for them, and of this Python."""
    folder = tmp_path_factory.mktemp("torch")
    words = ["pip", "install", "--quiet", "--no-deps", "--target", str(folder), f"torch=={TORCH}"]
    subprocess.run([own_program("uv"), *words], env=fetching_environment(), check=True)
    include = folder / "torch/include"
    folders = (include, include / "torch/csrc/api/include", sysconfig.get_path("include"))
    return [f"-I{one}" for one in folders]


@pytest.fixture(scope="module")
def objects(headers: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both halves of an extension: for Python, and for torch, each in its two ABIs."""
    folder = tmp_path_factory.mktemp("objects")
    sources = [
        ("full-python.o", "c", FULL_MODULE, []),
        ("stable-python.o", "c", FULL_MODULE, [LIMITED]),
        ("full-torch.o", "c++", FULL_TORCH, ["-std=c++20"]),
    ]
    code = STABLE.read_text(encoding="utf-8")
    for minor in (9, 10, 13):
        name = f"stable-torch{minor}.o"
        sources.append((name, "c++", code, ["-std=c++20", target(minor)]))
    for name, language, text, options in sources:
        words = ["g++", "-c", "-fPIC", "-x", language, *headers, *options, "-", "-o", folder / name]
        subprocess.run([*map(str, words)], input=text, text=True, check=True)
    return folder


def link(folder: Path, objects: Path, *parts: str, module: str, tag: str, requires: str) -> Path:
    """Write a wheel with a module that is made of some objects."""
    library = folder / "module.so"
    names = [str(objects / f"{part}.o") for part in parts]
    subprocess.run(["g++", "-shared", *names, "-o", str(library)], check=True)
    path = folder / f"tiny-1.0-{tag}-{PLATFORM}.whl"
    about = f"Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\nRequires-Dist: {requires}\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny-1.0.dist-info/METADATA", about)
        archive.write(library, f"tiny/{module}")
    return path


def measured(torchyard: Command, *words: object) -> list[ComparedWheel]:
    done = torchyard("compat", "--json", *words)
    return msgspec.json.decode(done.out, type=CompatReport).wheels


@pytest.mark.parametrize(
    ("parts", "module", "tag", "abi", "floors"),
    [
        (["full-python", "full-torch"], "_C.so", "cp311-cp311", "full", (None, None)),
        (["stable-python", "full-torch"], "_C.abi3.so", "cp310-abi3", "abi3", ("3.2", None)),
        (["full-python", "stable-torch10"], "_C.so", "cp311-cp311", "stable", (None, "2.10")),
        (["stable-python", "stable-torch10"], "_C.abi3.so", "cp310-abi3", "both", ("3.2", "2.10")),
    ],
    ids=["full", "abi3", "stable", "both"],
)
def test_compiled_extensions(  # noqa: PLR0917 - a row of the table
    torchyard: Command,
    tmp_path: Path,
    objects: Path,
    parts: list[str],
    module: str,
    tag: str,
    abi: str,
    floors: tuple[str | None, str | None],
) -> None:
    wheel = link(tmp_path, objects, *parts, module=module, tag=tag, requires="torch>=2.10")
    (found,) = measured(torchyard, "--abi", wheel)
    assert found.abi.name == abi
    assert (found.abi.python.floor, found.abi.torch.floor) == floors


@pytest.mark.parametrize(("minor", "floor"), [(9, "2.7"), (10, "2.10"), (13, "2.13")])
def test_the_floor_is_at_most_the_target_and_real(
    torchyard: Command, tmp_path: Path, objects: Path, minor: int, floor: str
) -> None:
    """By the table of functions, and by what torch releases really export."""
    parts = ("stable-python", f"stable-torch{minor}")
    wheel = link(
        tmp_path, objects, *parts, module="_C.abi3.so", tag="cp310-abi3", requires="torch>=2.6"
    )
    (found,) = measured(torchyard, "--torch", "2.10..2.13", wheel)
    assert found.abi.torch.floor == floor
    assert found.loads[-1].startswith(f"2.{max(minor, 10)}.")
    assert found.releases[0].loads


def test_28_wheels_of_torchaudio_could_be_4(torchyard: Command) -> None:
    done = torchyard("compat", "--abi", "--json", "torchaudio==2.11.0")
    document = msgspec.json.decode(done.out, type=CompatReport)
    assert (len(document.wheels), document.builds) == (28, 4)
    assert {wheel.abi.name for wheel in document.wheels} == {"both"}
    assert {wheel.abi.python.use for wheel in document.wheels} == {"none"}
    floors = {("linux" in wheel.file, wheel.abi.torch.floor) for wheel in document.wheels}
    assert floors == {(True, "2.11"), (False, "2.10")}, "only those for Linux have CUDA"
