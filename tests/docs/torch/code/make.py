"""Writes a package of made-up torch: python3 make.py VERSION PYTHON PACKAGE SPEC OUT."""

import sys
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

TORCH = """\
from torch.version import __version__


def add(left, right):
    return left + right
"""


def digest(text: str) -> str:
    return urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()


def write(path: Path, files: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)


def wheel(version: str, python: str, spec: str, out: Path) -> None:
    about = f"torch-{version}.dist-info"
    tag = f"{python}-{python}-manylinux_2_28_x86_64"
    files = {
        "torch/__init__.py": TORCH,
        "torch/version.py": f"__version__ = '{version}'\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n",
    }
    if spec:
        files[f"{about}/torchyard-spec.json"] = spec
    lines = [f"{name},sha256={digest(text)},{len(text)}" for name, text in files.items()]
    files[f"{about}/RECORD"] = "\n".join([*lines, f"{about}/RECORD,,"]) + "\n"
    write(out / f"torch-{version}-{tag}.whl", files)


def libtorch(version: str, spec: str, out: Path) -> None:
    files = {
        "libtorch/build-version": f"{version}\n",
        "libtorch/lib/libtorch.so": "made up\n",
        "libtorch/torchyard-spec.json": spec,
    }
    write(out / f"libtorch-shared-with-deps-{version}.zip", files)


if __name__ == "__main__":
    version, python, package, spec, out = sys.argv[1:]
    spec = "" if spec == "-" else Path(spec).read_text(encoding="utf-8")
    if package == "libtorch":
        libtorch(version, spec, Path(out))
    else:
        wheel(version, python, spec, Path(out))
