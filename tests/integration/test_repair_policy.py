"""`repair --rpath policy` never makes a wheel worse: made wheels here, those of PyPI at night."""

import shutil
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.helpers import Command
from tests.support.libraries import compile_library
from tests.support.wheels import shared_wheel

from torchyard.checks.checked import CheckedPackage
from torchyard.features.check.use_case import check_packages
from torchyard.features.repair.report import RepairReport
from torchyard.features.repair.use_case import repair_packages

pytestmark = pytest.mark.integration

TAG = "cp312-cp312-manylinux_2_28_x86_64"
SHAPES = {
    "auditwheel": {"tiny/mod.so": "runpath $ORIGIN/../tiny.libs", "tiny.libs/libz-1.so": ""},
    "inherited": {"tiny/mod.so": "rpath $ORIGIN/../tiny.libs", "tiny.libs/libz-1.so": ""},
    "absolute": {"tiny/mod.so": "runpath /opt/build/lib", "tiny.libs/libz-1.so": ""},
    "none": {"tiny/mod.so": "", "tiny/lib/libz-1.so": ""},
    "copies": {
        "tiny/mod.so": "runpath $ORIGIN/a",
        "tiny/a/libz-1.so": "",
        "tiny/lib/libz-1.so": "",
    },
}
"""Where wheels have a module and the library that it needs, and what the module's rpath is."""

PROJECTS = (
    *("aiohttp", "bcrypt", "cffi", "cryptography", "faiss-cpu", "fiona", "gevent", "greenlet"),
    *("grpcio", "h3", "h5py", "lxml", "lz4", "matplotlib", "ml-dtypes", "netCDF4", "numba"),
    *("numpy", "onnx", "orjson", "pandas", "pillow", "psutil", "psycopg2-binary", "pydantic-core"),
    *("pymongo", "pyproj", "pyyaml", "pyzmq", "regex", "safetensors", "scikit-learn", "scipy"),
    *("sentencepiece", "shapely", "soundfile", "tokenizers", "zstandard"),
)


def make(folder: Path, shape: str) -> Path:
    """Write a wheel of this shape."""
    leaf = compile_library(folder / "libz-1.so", "int leaf(void) { return 1; }")
    files: dict[str, bytes] = {"tiny/__init__.py": b""}
    for name, written in SHAPES[shape].items():
        kind, _, rpath = written.partition(" ")
        tags = f"-Wl,--{'disable' if kind == 'rpath' else 'enable'}-new-dtags"
        options = [tags, f"-Wl,-rpath,{rpath}"] if rpath else []
        code = "int leaf(void); int PyInit_mod(void) { return leaf(); }"
        mod = compile_library(folder / "mod.so", code, leaf, options=options)
        files[name] = (mod if name.endswith("mod.so") else leaf).read_bytes()
    about = "tiny-1.0.dist-info"
    files[f"{about}/METADATA"] = b"Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
    wheel = f"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    files[f"{about}/WHEEL"] = wheel.encode()
    rows = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in files.items()]
    files[f"{about}/RECORD"] = "\n".join([*rows, f"{about}/RECORD,,", ""]).encode()
    path = folder / f"tiny-1.0-{TAG}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return path


def _digest(data: bytes) -> str:
    return urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()


def errors(packages: Sequence[CheckedPackage]) -> list[str]:
    return [f"{f.rule}: {f.member} {f.what}" for f in packages[0].errors]


def repaired(path: Path, folder: Path) -> RepairReport:
    return repair_packages([path], rpath="policy", output=folder)


@pytest.mark.parametrize("shape", SHAPES)
def test_made_wheels_get_no_worse(tmp_path: Path, shape: str) -> None:
    path = make(tmp_path, shape)
    before = errors(check_packages([path]).packages)
    report = repaired(path, tmp_path / "out")
    assert report.check is not None
    assert not errors(report.check)
    assert bool(before) is (shape in {"absolute", "none"})
    assert report.packages[0].changes
    assert [file.name for file in (tmp_path / "out").glob("[!.]*")] == [path.name]


def test_a_result_with_more_errors_is_refused(torchyard: Command, tmp_path: Path) -> None:
    path, out = make(tmp_path, "auditwheel"), tmp_path / "out"
    done = torchyard("repair", path, "-o", out, "--rpath", "$ORIGIN/lib")
    assert done.code == 13
    assert f"would have 1 error where `{path.name}` has 0, so nothing was written" in done.err
    assert "New: linking-environment: tiny/mod.so needs `libz-1.so`" in done.err
    assert not list(out.glob("[!.]*"))
    done = torchyard("repair", path, "-o", out, "--rpath", "$ORIGIN/lib", "--no-check")
    assert done.code == 0, done.err
    assert [file.name for file in out.glob("[!.]*")] == [path.name]


def test_errors_that_were_there_before_do_not_refuse(torchyard: Command, tmp_path: Path) -> None:
    path, out = make(tmp_path, "none"), tmp_path / "out"
    done = torchyard("repair", path, "-o", out, "--rpath", "$ORIGIN/nowhere")
    assert done.code == 13
    assert [file.name for file in out.glob("[!.]*")] == [path.name]


@pytest.mark.slow
@pytest.mark.parametrize("project", PROJECTS)
def test_wheels_of_pypi_get_no_worse(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, project: str
) -> None:
    path = shared_wheel(tmp_path_factory, project, "3.12")
    before = errors(check_packages([path]).packages)
    after = repaired(path, tmp_path / "out").check
    assert after is not None
    print(f"{path.name}: {len(before)} errors before, {len(errors(after))} after")
    assert len(before) >= len(errors(after))
    assert not errors(check_packages([path], policy="pypi", rules=["upload-*"]).packages)
    shutil.rmtree(tmp_path / "out")
