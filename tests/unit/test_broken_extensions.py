"""Ways in which wheels of extensions break for users: each is told, with something to do."""

import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.helpers import Command
from tests.support.made_elf import Made, make_elf

from torchyard.toolchain.index_wheels import IndexWheel
from torchyard.workspace import torch_releases

LINUX = "manylinux_2_28_x86_64"
TAG, ABI3_TAG = f"cp312-cp312-{LINUX}", f"cp310-abi3-{LINUX}"
MODULE, ABI3_MODULE = "demo/_C.cpython-312-x86_64-linux-gnu.so", "demo/_C.abi3.so"
ADD = "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_"
GONE = "_ZN3c104core8oldThingEv"
OLD_STRING = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
NEW_STRING = (
    "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
)
SHIM = "torch_library_impl"
CREATE = "PyModule_Create2"
TORCH = ("libtorch_cpu.so", "libc10.so")


def module(
    *imports: str,
    needed: Sequence[str] = TORCH,
    exports: Sequence[str] = ("PyInit__C",),
    runpath: str = "$ORIGIN",
    needs: Mapping[str, Sequence[str]] = {},
    stack: int = 6,
) -> bytes:
    symbols = [(name, 1, 0, 0) for name in imports] + [(name, 1, 0, 1) for name in exports]
    made = Made(
        needed=needed,
        runpath=runpath,
        symbols=symbols,
        needs=needs,
        stack=stack,
        build_id=b"\x01" * 20,
    )
    return make_elf(made)


def for_arm(content: bytes) -> bytes:
    return content[:18] + (183).to_bytes(2, "little") + content[20:]


class Extension(NamedTuple):
    """A wheel; without changes, it is sound."""

    tag: str = TAG
    version: str = "1.0"
    members: Mapping[str, bytes] = {MODULE: module(ADD, CREATE)}
    requires: Sequence[str] = ("torch>=2.13",)
    renamed: str = ""
    """The file name, if it is not that of its metadata."""

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        about = f"demo-{self.version}.dist-info"
        needs = "".join(f"Requires-Dist: {line}\n" for line in self.requires)
        files = {
            "demo/__init__.py": b"import torch\n",
            **self.members,
            f"{about}/METADATA": (
                f"Metadata-Version: 2.1\nName: demo\nVersion: {self.version}\n{needs}"
            ).encode(),
            f"{about}/WHEEL": (
                "Wheel-Version: 1.0\nGenerator: test\n"
                f"Root-Is-Purelib: {str(self.tag.endswith('any')).lower()}\nTag: {self.tag}\n"
            ).encode(),
        }
        rows = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in files.items()]
        files[f"{about}/RECORD"] = "\n".join([*rows, f"{about}/RECORD,,", ""]).encode()
        path = folder / (self.renamed or f"demo-{self.version}-{self.tag}.whl")
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in files.items():
                archive.writestr(zipfile.ZipInfo(name), data)
        return path


def _digest(data: bytes) -> str:
    return urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()


def stable(*imports: str) -> Extension:
    """An extension of Python's stable ABI."""
    return Extension(tag=ABI3_TAG, members={ABI3_MODULE: module(ADD, CREATE, *imports)})


def having(*imports: str, needed: Sequence[str] = ()) -> Extension:
    return Extension(members={MODULE: module(ADD, CREATE, *imports, needed=(*TORCH, *needed))})


class Way(NamedTuple):
    """A way to break: the rule that finds it, a sentence about it, and what to do."""

    name: str
    extension: Extension
    rule: str
    told: str
    todo: str


WARNINGS = ("label-any", "torch-empty")

CHECKED = [
    Way(
        "compiled on a newer Linux",
        Extension(
            members={
                MODULE: module(
                    ADD, needed=(*TORCH, "libc.so.6"), needs={"libc.so.6": ["GLIBC_2.38"]}
                )
            }
        ),
        "symbols-ceiling",
        "needs GLIBC_2.38, newer than systems with glibc 2.28 have",
        "compile it on an older system, or give the wheel another tag",
    ),
    Way(
        "compiled for another machine",
        Extension(members={MODULE: for_arm(module(ADD))}),
        "label-platform",
        "an ELF file for aarch64, not an ELF file for x86_64",
        "compile it for the platform of the label, or retag it",
    ),
    Way(
        "for any machine, though compiled",
        Extension(tag="py3-none-any", members={"demo/_C.so": module(ADD)}),
        "label-any",
        "an ELF file, in a package for any machine",
        "tag the package with its platform",
    ),
    Way(
        "a library of the build machine",
        having(needed=["libopencv_core.so.4"]),
        "linking-unresolved",
        "needs `libopencv_core.so.4`",
        "bundle it, require the package that has it, or do not link with it",
    ),
    Way(
        "a path of the build machine",
        Extension(members={MODULE: module(ADD, runpath="/usr/local/cuda/lib64")}),
        "linking-rpath-outside",
        "looks for libraries in `/usr/local/cuda/lib64`, outside of the installed packages",
        "let every entry begin with $ORIGIN",
    ),
    Way(
        "torch is not required",
        Extension(requires=()),
        "linking-undeclared",
        "of `torch`, which the package does not require",
        "require torch",
    ),
    Way(
        "torch is in the wheel",
        Extension(
            members={
                MODULE: module(ADD, runpath="$ORIGIN/../demo.libs"),
                "demo.libs/libc10.so": module(needed=(), exports=["_ZN3c105ErrorC1Ev"]),
                "demo.libs/libtorch_cpu.so": module(needed=(), exports=[ADD]),
            }
        ),
        "torch-vendored",
        "is a copy of torch's `libtorch_cpu.so`",
        "leave torch's libraries out",
    ),
    Way(
        "CUDA 12, and torch brings CUDA 13",
        having(needed=["libcudart.so.12"]),
        "torch-toolkit",
        "needs CUDA 12, but the wheel admits torch 2.13 to 2.15, which brings CUDA 13 on PyPI",
        "exclude torch 2.13 to 2.15, or compile with CUDA 13",
    ),
    Way(
        "a function of a newer torch",
        Extension(members={MODULE: module(SHIM, "torch_from_blob")}, requires=["torch>=2.10"]),
        "torch-floor",
        "uses `torch_from_blob`, which torch has since 2.11, but the wheel requires `torch>=2.10`",
        "require torch>=2.11, or compile with a lower TORCH_TARGET_VERSION",
    ),
    Way(
        "the module of another Python",
        Extension(members={MODULE.replace("312", "311"): module(ADD)}),
        "label-python",
        "the module is for cp311, but the label says cp312",
        "compile it for cp312, or correct the tag",
    ),
    Way(
        "the module of one Python in a wheel for many",
        Extension(tag=ABI3_TAG),
        "label-python",
        "the module is for cp312, but the label says abi3",
        "compile it for abi3, or correct the tag",
    ),
    Way(
        "abi3 without Py_LIMITED_API",
        stable("_PyObject_GetState"),
        "symbols-python",
        "uses _PyObject_GetState, not in the stable ABI of Python 3.10",
        "define Py_LIMITED_API, or do not promise abi3",
    ),
    Way(
        "abi3 of a newer Python than the tag says",
        stable("PyType_FromMetaclass"),
        "symbols-python",
        "uses PyType_FromMetaclass, not in the stable ABI of Python 3.10",
        "define Py_LIMITED_API, or do not promise abi3",
    ),
    Way(
        "linked with libpython",
        having(needed=["libpython3.12.so.1.0"]),
        "symbols-python",
        "needs `libpython3.12.so.1.0`, which a wheel must not",
        "do not link with libpython",
    ),
    Way(
        "free-threaded code in a wheel for a Python with a lock",
        having("_Py_DecRefShared"),
        "symbols-python",
        "uses _Py_DecRefShared, which only a free-threaded Python has, but is for cp312",
        "compile it with the headers of cp312",
    ),
    Way(
        "an executable stack, which glibc 2.41 refuses",
        Extension(members={MODULE: module(ADD, stack=7)}),
        "symbols-stack",
        "has an executable stack",
        "link with -Wl,-z,noexecstack",
    ),
    Way(
        "nothing was compiled",
        Extension(members={}),
        "torch-empty",
        "nothing in the wheel is compiled, but its label says cp312",
        "see why in the log of its build",
    ),
    Way(
        "compiled without CUDA",
        Extension(version="1.0+cu130"),
        "label-compute",
        "nothing in the package uses a GPU, but it is for cu130",
        "see in the log of its build why it was compiled without",
    ),
    Way(
        "CUDA in a wheel for the CPU",
        Extension(
            version="1.0+cpu",
            members={MODULE: module(ADD, needed=(*TORCH, "libcudart.so.13"))},
        ),
        "label-compute",
        "needs `libcudart.so.13`, but the package is for cpu",
        "compile it for cpu, or label it otherwise",
    ),
    Way(
        "renamed for another Python",
        Extension(renamed=f"demo-1.0-cp311-cp311-{LINUX}.whl"),
        "wheel-tags",
        "the file's name lacks tags of WHEEL: cp312-cp312-manylinux_2_28_x86_64",
        "change names by `torchyard repair`, which also writes them into the wheel",
    ),
    Way(
        "a local version that is only in the file name",
        Extension(renamed=f"demo-1.0+pt213cpu-{TAG}.whl"),
        "dist-info",
        "the folder's name is not that of demo 1.0+pt213cpu",
        "change names by `torchyard repair`",
    ),
]


@pytest.mark.parametrize("way", CHECKED, ids=lambda way: way.name)
def test_check_tells(torchyard: Command, tmp_path: Path, way: Way) -> None:
    path = way.extension.write(tmp_path)
    done = torchyard("check", path)
    text = " ".join(done.out.split())
    assert done.code == (0 if way.rule in WARNINGS else 13), done.out
    assert f" {way.rule} " in text
    assert way.told in text
    assert f"to do: {way.todo}" in text
    page = torchyard("explain", "rule", way.rule)
    assert page.code == 0
    assert len(page.out.split("\n\n")) > 3, "what is wrong, why that matters, what to do"


# ------------------------------------------------------------------------------- floors

BOTH = Extension(
    tag=ABI3_TAG,
    members={ABI3_MODULE: module(SHIM, CREATE)},
    requires=["torch>=2.10"],
)
"""Its functions are those of Python 3.10 and torch 2.10, and it says so."""


def both(*imports: str) -> Extension:
    return BOTH._replace(members={ABI3_MODULE: module(SHIM, CREATE, *imports)})


LIES = [
    ("an older torch is admitted", BOTH._replace(requires=["torch>=2.9"]), "torch-floor"),
    ("any torch is admitted", BOTH._replace(requires=["torch"]), "torch-floor"),
    ("no torch is required", BOTH._replace(requires=["numpy"]), "torch-floor"),
    ("a newer function of torch", both("torch_exception_get_what"), "torch-floor"),
    ("a newer function of Python", both("PyType_FromMetaclass"), "symbols-python"),
    (
        "an older Python in the tag",
        both("PyModule_AddObjectRef")._replace(tag=f"cp39-abi3-{LINUX}"),
        "symbols-python",
    ),
    ("a function that is not stable", both("_PyObject_GetState"), "symbols-python"),
    ("a module of one Python", BOTH._replace(members={MODULE: module(SHIM)}), "label-python"),
]


@pytest.mark.parametrize(("extension", "rule"), [lie[1:] for lie in LIES], ids=[x[0] for x in LIES])
def test_lies_about_floors(
    torchyard: Command, tmp_path: Path, extension: Extension, rule: str
) -> None:
    done = torchyard("check", extension.write(tmp_path))
    assert (done.code, f"error {rule}" in done.out) == (13, True), done.out


def test_the_truth_about_floors(torchyard: Command, tmp_path: Path) -> None:
    done = torchyard("check", BOTH.write(tmp_path))
    assert done.code == 0, done.out
    assert "both: Python 3.2 or newer, torch 2.10 or newer" in done.out


def test_a_sound_extension_passes_everything(
    torchyard: Command, tmp_path: Path, offered: None
) -> None:
    for sound in (Extension(), stable(), Extension(version="1.0+cpu")):
        path = sound.write(tmp_path / sound.version / sound.tag)
        checked = torchyard("check", path)
        assert (checked.code, "nothing found" in checked.out) == (0, True), checked.out
        compared = torchyard("compat", path)
        assert compared.code == 0, compared.out
        external = ("--external", "torch")
        assert torchyard("publish", path, "--to", tmp_path / "c", "--dry-run", *external).code == 0


# ------------------------------------------------------------------------------- compat


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer torch 2.13 and 2.14; the newer one lacks a function."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wheels = []
    for release, symbols in (("2.14.0", [ADD, NEW_STRING]), ("2.13.0", [ADD, NEW_STRING, GONE])):
        file = f"torch-{release}-cp312-cp312-{LINUX}.whl"
        path = tmp_path / file
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"torch-{release}.dist-info/METADATA", "Name: torch\n")
            cpu = module(needed=["libc10.so"], exports=symbols)
            archive.writestr("torch/lib/libtorch_cpu.so", cpu)
            archive.writestr("torch/lib/libc10.so", module(needed=[], exports=["c10_name"]))
            cuda = module(needed=["libcudart.so.13"], exports=["c10_cuda_name"])
            archive.writestr("torch/lib/libc10_cuda.so", cuda)
        wheels.append(IndexWheel(name="torch", file=file, version=release, url=path.as_uri()))
    monkeypatch.setattr(torch_releases, "find_releases", lambda *_, **__: wheels)
    monkeypatch.setattr("torchyard.features.compat.use_case.find_releases", lambda *_, **__: wheels)


@pytest.mark.usefixtures("offered")
@pytest.mark.parametrize(
    ("extension", "told"),
    [
        (having(GONE), "2.14.0 CUDA 13 no _C.cpython-312-x86_64-linux-gnu.so needs c10::core"),
        (having(OLD_STRING), "c10::detail::torchCheckFail"),
        (having(needed=["libtorch_hip.so"]), "needs libtorch_hip.so"),
        (having(needed=["libcudart.so.12"]), "needs CUDA 12 (libcudart.so.12)"),
        (
            Extension(requires=["torch>=2.13", "nvidia-cublas-cu12"]),
            "METADATA needs CUDA 12",
        ),
    ],
    ids=[
        "compiled against another torch",
        "the old std::string",
        "compiled for ROCm, and torch for CUDA",
        "the runtime of another CUDA",
        "wheels of another CUDA",
    ],
)
def test_compat_tells(torchyard: Command, tmp_path: Path, extension: Extension, told: str) -> None:
    done = torchyard("compat", extension.write(tmp_path / "dist"))
    assert done.code == 13
    assert told in " ".join(done.out.split())
    assert "its metadata are wrong: they admit 2.14.0" in done.out
    assert "exclude torch 2.14.0" in done.err


# ------------------------------------------------------------------------------- publish


class Refused(NamedTuple):
    """A wheel that a channel does not take, beside one that it may have."""

    name: str
    extension: Extension
    told: str
    todo: str
    published: Extension | None = None


REFUSED = [
    Refused(
        "an error of a check", having(needed=["libcudart.so.12"]), "has errors", "torchyard check"
    ),
    Refused(
        "a dependency that the channel has not",
        Extension(requires=["torch>=2.13", "demo-kernels"]),
        "needs `demo-kernels`, which the channel does not have",
        "--external demo-kernels",
    ),
    Refused(
        "other bytes under the same name",
        having("cudaMalloc"),
        "with other bytes",
        "publish it under another version or build number",
        Extension(),
    ),
    Refused(
        "wheels of one version that require different things",
        stable()._replace(requires=["torch>=2.14"]),
        "are both 1.0, and differ in Requires-Dist",
        "use markers, or two versions",
        Extension(),
    ),
]


@pytest.mark.parametrize("refused", REFUSED, ids=lambda refused: refused.name)
def test_publish_refuses(torchyard: Command, tmp_path: Path, refused: Refused) -> None:
    to = ("--to", tmp_path / "channel", "--external", "torch")
    if refused.published:
        path = refused.published.write(tmp_path / "first")
        assert torchyard("publish", path, *to).code == 0
    done = torchyard("publish", refused.extension.write(tmp_path / "second"), *to)
    assert done.code == 15
    assert refused.told in done.err
    assert refused.todo in done.err
