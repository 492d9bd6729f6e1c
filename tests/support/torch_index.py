"""An index of torch wheels that are nothing but their metadata, and an extension to lock."""

import json
import zipfile
from pathlib import Path

import pytest
from tests.support.helpers import Command

LINUX = "manylinux_2_28_x86_64"
CODES = b"sm_75 sm_90a sm_120 compute_120"
LIBRARY = b"\x7fELF" + bytes(range(256)) * 3000 + b"\0sm_\0" + CODES + b"\0" + b"more" * 99
FILE = """\
[project]
name = "myext"
version = "1.0"
recipe = "extension"
[source]
path = "code"
[toolchain]
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
torch = ["torch2.13"]
python = ["cp312"]
package = ["wheel"]
"""


def add_torch(
    folder: Path, version: str, *requires: str, pythons: tuple[str, ...] = ("cp312",)
) -> None:
    for python in pythons:
        tag = f"{python.rstrip('t')}-{python}-{LINUX}"
        add_wheel(folder, "torch", version, *requires, tag=tag, library=LIBRARY)


def add_wheel(
    folder: Path, name: str, version: str, *requires: str, tag: str, library: bytes = b""
) -> None:
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("torch/lib/libtorch_python.so", library)
        wheel.writestr(f"{name}-{version}.dist-info/METADATA", "\n".join(lines))
        wheel.writestr(f"{name}-{version}.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")
        wheel.writestr(f"{name}-{version}.dist-info/RECORD", "")


def use_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let uv look nowhere but in a directory of wheels."""
    (folder / "empty").mkdir()
    monkeypatch.setenv("UV_DEFAULT_INDEX", (folder / "empty").as_uri())
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    for name in ("UV_INDEX", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    add_wheel(folder, "setuptools", "80.9.0", tag="py3-none-any")
    add_torch(folder, "2.13.0")


def project(folder: Path) -> Path:
    (folder / "project/code").mkdir(parents=True)
    (folder / "project/code/setup.py").touch()
    file = folder / "project/torchyard.toml"
    file.write_text(FILE, encoding="utf-8")
    return file


def fingerprints(torchyard: Command, file: Path) -> dict[str, str]:
    plan = json.loads(torchyard("plan", "--json", "-f", file).out)
    return {job["id"]: job["fingerprint"] for job in plan["jobs"]}
