"""The torch of a cell and the build requirements become wheels with digests, by a real uv."""

import hashlib
import zipfile
from pathlib import Path

import pytest
from tests.support.helpers import Command

from torchyard.config.tables import load_tables
from torchyard.errors import ConfigError, HostError
from torchyard.model.quantity import show_size
from torchyard.toolchain.environment_lock import (
    LockTarget,
    lock_target,
    resolve_environment,
    resolve_with_torch,
)
from torchyard.toolchain.index_wheels import IndexWheel, read_pylock

TARGET = LockTarget("3.11", "manylinux_2_28_x86_64")
LINUX = "manylinux_2_28_x86_64"
FILE = """\
[project]
name = "myext"
version = "1.0"
recipe = "extension"
[source]
path = "code"
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu", "cu130"]
torch = ["torch2.13"]
python = ["cp312"]
package = ["wheel"]
"""


def add_wheel(
    folder: Path, name: str, version: str, *requires: str, tag: str = "py3-none-any"
) -> str:
    path = folder / f"{name}-{version}-{tag}.whl"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}-{version}.dist-info/METADATA", "\n".join(lines))
        wheel.writestr(f"{name}-{version}.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")
        wheel.writestr(f"{name}-{version}.dist-info/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


OTHERS = ("cuda_toolkit-13.0.2", "setuptools-80.9.0")


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of wheels, which is all that uv looks into: small ones that are called torch."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "empty").as_uri())
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    for name in ("UV_INDEX", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    for python in ("cp311", "cp312"):
        tag = f"{python}-{python}-{LINUX}"
        add_wheel(tmp_path, "torch", "2.13.0", "cuda-toolkit==13.0.*", tag=tag)
    add_wheel(tmp_path, "torch", "2.13.0+cpu", tag=f"cp311-cp311-{LINUX}")
    add_wheel(tmp_path, "torch", "2.14.0+cu128", tag=f"cp311-cp311-{LINUX}")
    add_wheel(tmp_path, "cuda_toolkit", "13.0.2")
    add_wheel(tmp_path, "setuptools", "80.9.0")
    return tmp_path


def test_requirements_become_wheels_with_their_digests(index: Path) -> None:
    digest = add_wheel(index, "numpy", "2.2.6", tag=f"cp311-cp311-{LINUX}")
    found = resolve_environment(["numpy", "setuptools>=61"], TARGET)
    assert found.versions == {"numpy": "2.2.6", "setuptools": "80.9.0"}
    assert found.files[f"numpy-2.2.6-cp311-cp311-{LINUX}.whl"] == digest


def test_the_torch_of_a_compute_platform_comes_before_one_for_any() -> None:
    found = resolve_with_torch(["setuptools"], "2.13", "cpu", TARGET)
    assert found.versions["torch"] == "2.13.0+cpu"
    other = resolve_with_torch([], "2.13", "cpu", TARGET._replace(python="3.12"))
    assert other.versions == {"torch": "2.13.0", "cuda-toolkit": "13.0.2"}


def test_a_torch_of_another_compute_platform_is_not_taken() -> None:
    assert resolve_with_torch([], "2.13", "cu130", TARGET).versions["torch"] == "2.13.0"
    assert resolve_with_torch([], "2.14", "cu128", TARGET).versions["torch"] == "2.14.0+cu128"
    with pytest.raises(HostError, match=r"no torch 2\.14 for cu130 and Python 3\.11"):
        resolve_with_torch([], "2.14", "cu130", TARGET)


@pytest.mark.slow
def test_a_lock_says_what_torch_is_for_and_refuses_another_cuda(
    torchyard: Command, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / "code").mkdir(parents=True)
    (project / "code/setup.py").touch()
    file = project / "torchyard.toml"
    file.write_text(FILE, encoding="utf-8")
    done = torchyard("lock", "-f", file)
    assert done.code == 0, done.err
    names = (f"torch-2.13.0-cp312-cp312-{LINUX}", *(f"{one}-py3-none-any" for one in OTHERS))
    size = show_size(sum((tmp_path / f"{name}.whl").stat().st_size for name in names))
    assert f"cu130-torch2.13/cp312: torch 2.13.0, 3 wheels of {size}\n" in done.err
    smaller = "an index with 2.13.0+cpu, named by UV_INDEX, has a smaller one"
    said = f"torch 2.13.0, which is for cu130, 3 wheels of {size}; {smaller}"
    assert f"cpu-torch2.13/cp312: {said}\n" in done.err
    file.write_text(FILE.replace("cu130", "cu126"), encoding="utf-8")
    refused = torchyard("lock", "-f", file)
    assert "torch 2.13.0 of the index was built for cu130, and not cu126" in refused.err


def test_the_reason_why_a_source_can_not_be_fetched_is_shown(
    torchyard: Command, tmp_path: Path
) -> None:
    file = tmp_path / "torchyard.toml"
    archive = 'archive = "none.tar.gz"\nsha256 = "' + "0" * 64 + '"'
    file.write_text(FILE.replace('path = "code"', archive), encoding="utf-8")
    (tmp_path / "none.tar.gz").write_bytes(b"")
    refused = torchyard("lock", "-f", file)
    assert refused.code
    assert "none.tar.gz" in refused.err
    assert "correct [source]" in refused.err
    assert "--keep-going" not in refused.err


def test_what_no_wheel_satisfies_is_an_error_with_uvs_words() -> None:
    with pytest.raises(HostError, match=r"no torch 2\.13 for cpu .* no solution found(?s:.*)2\.14"):
        resolve_with_torch(["torch>=2.14"], "2.13", "cpu", TARGET)


def test_only_linux_is_built_for() -> None:
    with pytest.raises(ConfigError, match="not built for `win_amd64` yet"):
        resolve_environment([], LockTarget("3.11", "win_amd64"))


def test_free_threaded_pythons_are_refused() -> None:
    assert lock_target(load_tables(), "linux-x86_64", "cp311") == TARGET
    with pytest.raises(ConfigError, match="uv can't resolve wheels for cp314t"):
        lock_target(load_tables(), "linux-x86_64", "cp314t")


def test_what_has_no_wheel_can_not_be_pinned() -> None:
    with pytest.raises(HostError, match="`a` has no wheel"):
        read_pylock('[[packages]]\nname = "a"\nversion = "1"\nsdist = { url = "a.tar.gz" }\n', "")


def test_a_wheel_without_a_digest_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = IndexWheel(name="a", file="a-1-py3-none-any.whl", version="1", url="x")
    monkeypatch.setattr(
        "torchyard.toolchain.environment_lock.resolve_wheels", lambda *_words: [wheel]
    )
    with pytest.raises(HostError, match=r"no SHA-256 of `a-1-py3-none-any.whl`"):
        resolve_environment([], TARGET)


def test_what_an_index_calls_a_wheel_is_looked_at() -> None:
    listed = '[{ url = "x/a-1.whl%22%0Ab", hashes = { sha256 = "0" } }]'
    with pytest.raises(HostError, match="an invalid wheel"):
        read_pylock(f'[[packages]]\nname = "a"\nversion = "1"\nwheels = {listed}\n', "")


def test_of_several_builds_the_highest_is_taken() -> None:
    names = [f"a-1-{build}py3-none-any.whl" for build in ("", "2-", "10-")]
    listed = ", ".join(
        f'{{ url = "x/{name}", hashes = {{ sha256 = "{name}" }} }}' for name in names
    )
    found = read_pylock(f'[[packages]]\nname = "a"\nversion = "1"\nwheels = [{listed}]\n', "")
    assert [wheel.file for wheel in found] == ["a-1-10-py3-none-any.whl"]
