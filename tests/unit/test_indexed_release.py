"""A torch release that no table has is described by its wheels, locked, and planned."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.helpers import Command
from tests.support.torch_index import FILE, LINUX, add_torch, fingerprints, project, use_only

from torchyard.compute.registry import platform_for
from torchyard.config.lock import read_build_lock
from torchyard.config.revisions import load_config_at
from torchyard.errors import HostError
from torchyard.index.simple.project_files import list_wheels
from torchyard.model.tables import Release
from torchyard.workspace.indexed_release import find_indexed_release

PLATFORMS = {"linux-x86_64": LINUX}
CUDA = (
    'cuda-toolkit[cublas,cudart]==19.8.1; platform_system == "Linux"',
    'nvidia-cudnn-cu13==9.26.0.51; platform_system == "Linux"',
    'triton~=3.9.0; platform_system == "Linux" and python_version < "3.16"',
    'opt-einsum>=3.3; extra == "opt-einsum"',
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of wheels, which is all that uv looks into."""
    use_only(tmp_path, monkeypatch)
    return tmp_path


def row_of(folder: Path, name: str, *computes: str) -> tuple[str, Release]:
    wheels = list_wheels("torch", [], [str(folder)])
    return find_indexed_release(name, wheels, platforms=PLATFORMS, computes=computes)


def test_wheels_say_what_a_release_is_built_with(folder: Path) -> None:
    add_torch(folder, "9.8.0", *CUDA, pythons=("cp312",))
    add_torch(folder, "9.8.1", *CUDA, pythons=("cp315t", "cp39", "cp312"))
    add_torch(folder, "9.8.2rc1", *CUDA)
    assert row_of(folder, "9.8", "cu130") == (
        "9.8.1",
        Release(
            libraries={"cu198": {}},
            pythons=("cp39", "cp312", "cp315t"),
            archs={"cu198": {"linux-x86_64": ("7.5", "9.0a", "12.0+PTX")}},
        ),
    )


def test_pins_are_those_of_the_compute_platforms_libraries(folder: Path) -> None:
    add_torch(folder, "9.8.0", *(line.replace("19.8.1", "13.2.1") for line in CUDA))
    row = row_of(folder, "9.8", "cu132")[1]
    assert row.libraries == {"cu132": {"cudnn": "9.26.0.51"}}
    assert row.triton == {"cu132": "3.9.0"}


def test_local_versions_name_compute_platforms(folder: Path) -> None:
    add_torch(folder, "9.8.0+cpu")
    add_torch(folder, "9.8.0+cu126", "nvidia-cudnn-cu12==9.1")
    add_torch(folder, "9.8.0+cu132", "nvidia-cudnn-cu13==9.2")
    assert row_of(folder, "9.8", "cu132", "cu130")[1].libraries == {"cu132": {"cudnn": "9.2"}}
    plain = row_of(folder, "9.8")[1]
    assert plain == Release(libraries={}, pythons=("cp312",))


def test_a_release_that_no_index_has_is_an_error(folder: Path) -> None:
    add_torch(folder, "9.8.0rc1")
    with pytest.raises(HostError, match=r"no index of this machine has wheels of torch 9\.8") as no:
        row_of(folder, "9.8")
    assert "newest releases are 2.13" in str(no.value.diagnostics[0].hint)


archs = st.lists(st.tuples(st.integers(5, 13), st.integers(0, 9)), unique=True).map(sorted)


@given(archs, st.booleans())
def test_codes_are_read_as_the_architectures_that_they_are_of(
    numbers: list[tuple[int, int]], ptx: bool
) -> None:
    cuda = platform_for("cu130")
    written = [f"{major}.{minor}" for major, minor in numbers]
    if ptx and written:
        written[-1] += "+PTX"
    assert cuda.archs_of(cuda.device_codes(written)) == tuple(written)


def test_a_new_torch_is_locked_and_planned(torchyard: Command, folder: Path) -> None:
    file = project(folder)
    text = FILE.replace('"torch2.13"', '"torch9.8"').replace('"cp312"', '"cp311", "cp312"')
    file.write_text(text, encoding="utf-8")
    refused = torchyard("plan", "-f", file)
    assert refused.code != 0
    assert "unknown torch `torch9.8`" in refused.err
    assert "`torchyard lock` looks for it in the index" in refused.err
    missing = torchyard("lock", "-f", file)
    assert "no index of this machine has wheels of torch 9.8" in missing.err

    add_torch(folder, "9.8.0")
    locked = torchyard("lock", "-f", file)
    assert locked.code == 0, locked.err
    assert "torch 9.8 is not in torchyard's tables: the index has 9.8.0 for cp312" in locked.err
    planned = torchyard("plan", "-f", file)
    assert "torch9.8×1" in planned.out
    assert "torch 9.8 has no wheels for cp311" in planned.out
    assert any(
        line.split() == ["9.8", "releases", "torchyard.lock"] for line in planned.out.splitlines()
    )


def commit(folder: Path) -> None:
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org"]
    for words in ("init --quiet", "add torchyard.toml torchyard.lock", "commit --quiet -m first"):
        subprocess.run([*git, *words.split()], cwd=folder, check=True)


@pytest.mark.slow
def test_a_lock_gets_only_what_is_new(torchyard: Command, folder: Path) -> None:
    file = project(folder)
    assert torchyard("lock", "-f", file).code == 0
    before, first = read_build_lock(str(file)), fingerprints(torchyard, file)
    commit(file.parent)
    add_torch(folder, "2.13.1")
    add_torch(folder, "9.8.0")
    file.write_text(FILE.replace('"torch2.13"', '"torch2.13", "torch9.8"'), encoding="utf-8")
    done = torchyard("lock", "-f", file)
    assert "torch2.13" not in done.err
    after, second = read_build_lock(str(file)), fingerprints(torchyard, file)
    assert after.environments.items() > before.environments.items()
    assert second.items() > first.items()
    assert all("cpu-torch9.8/cp312" in name for name in second.keys() - first.keys())
    assert load_config_at("HEAD", str(file)).lock == before
    shown = torchyard("plan", "diff", "HEAD", file, "-f", file).out.splitlines()
    assert shown[0] == "1 package new"
    assert shown[-1] == "1 package unchanged"

    upgraded = torchyard("lock", "--upgrade", "-f", file)
    assert "cpu-torch2.13/cp312: torch 2.13.1" in upgraded.err
    changed = torchyard("plan", "diff", "HEAD", file, "-f", file).out
    assert "1 package to rebuild\n  because bindings requires" in changed


def test_a_lock_that_can_not_be_read_is_written_anew(torchyard: Command, folder: Path) -> None:
    file = project(folder)
    file.with_name("torchyard.lock").write_text("version = 9", encoding="utf-8")
    assert "`torchyard lock` writes it again" in torchyard("plan", "-f", file).err
    assert torchyard("lock", "-f", file).code == 0
    assert torchyard("plan", "-f", file).code == 0


def test_init_takes_a_torch_that_only_an_index_knows(torchyard: Command, tmp_path: Path) -> None:
    file = tmp_path / "torchyard.toml"
    words = "--recipe extension --name myext --version 1.0 --path . --compute cpu,cu130"
    done = torchyard("init", "-f", file, *words.split(), "--torch", "2.14,9.8")
    assert done.code == 0, done.err
    assert "now try: torchyard lock" in done.err
    assert '"torch2.14", "torch9.8"' in file.read_text(encoding="utf-8")
    wrong = torchyard("init", "--force", "-f", file, *words.split(), "--torch", "newest")
    assert "`newest` is not a torch release, such as 2.15" in wrong.err
