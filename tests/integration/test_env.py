"""`torchyard toolchain activate`: real toolchains and compilers, used in real shells."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.helpers import ROOT, Command
from tests.support.recipe import SWITCHES, copy_sample

from torchyard.toolchain.activation import UNDO

PROJECTS = ROOT / "tests/projects"
BLOCK = ".torchyard/env/linux-x86_64/cpu-openblas"

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc"),
]


def in_shell(shell: str, script: Path, *lines: str) -> str:
    """Run lines in a shell that has sourced a script, in an environment without build settings."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    own = {k: v for k, v in os.environ.items() if not k.startswith((*SWITCHES, "VIRTUAL_ENV"))}
    text = "\n".join((f". {script}", *lines))
    options = {"bash": ("--norc", "-eu"), "zsh": ("-f", "-eu"), "fish": ("--no-config",)}[shell]
    done = subprocess.run(
        [shell, *options, "-c", text], env=own, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_cells_share_what_is_installed(torchyard: Command, tmp_path: Path) -> None:
    shutil.copytree(PROJECTS / "smalltorch", tmp_path / "project")
    file = tmp_path / "project/torchyard.toml"
    text = file.read_text("utf-8").replace('"cmake==3.31.10"', "")
    file.write_text(text, encoding="utf-8")
    several = torchyard("toolchain", "activate", "-f", file)
    assert several.code == 5
    assert "the file has 4 environments: cpu-openblas/cp310, cpu-openblas/cp311" in several.err
    assert "`cp39` matches no cell" in torchyard("toolchain", "activate", "cp39", "-f", file).err

    shown = torchyard("toolchain", "activate", "cp311", "-f", file)
    assert shown.code == 0, shown.err
    home = file.parent / BLOCK
    assert f"leave it: {UNDO}" in shown.out
    (blas,) = (file.parent / ".torchyard/env/toolchain").iterdir()
    made = (home / "cp311/env").stat().st_ino, blas.stat().st_ino
    (home / "cp311/env/lib/python/site-packages/mine.py").touch()

    told = json.loads(torchyard("toolchain", "activate", "cp311", "-f", file, "--json").out)
    assert ((home / "cp311/env").stat().st_ino, blas.stat().st_ino) == made
    assert (home / "cp311/env/lib/python/site-packages/mine.py").exists()
    assert told["set"]["VIRTUAL_ENV"] == f"{home}/cp311/env"
    assert told["prepend"]["PATH"] == [f"{home}/cp311/tools", f"{home}/cp311/env/bin"]
    assert {part["part"] for part in told["parts"]} == {"compiler", "blas", "python"}
    assert "/mnt/torchyard" not in json.dumps(told)

    stale = blas.with_name("mkl-1.0-pypi-sha256-0000000000000000")
    stale.mkdir()
    assert torchyard("toolchain", "activate", "*/cp312/*", "-f", file).code == 0
    assert [*blas.parent.iterdir()] == [blas], "shared, and what no environment has is gone"

    stale.mkdir()
    (home / "cp311/environment.json").write_bytes(b"")  # as a power cut may leave it
    assert torchyard("toolchain", "activate", "cp312", "-f", file).code == 0
    assert stale.is_dir(), "what is in use is not known"
    assert torchyard("toolchain", "activate", "cp311", "-f", file).code == 0
    assert not stale.exists()


@pytest.mark.slow
def test_a_shell_compiles_with_the_plain_names(torchyard: Command, tmp_path: Path) -> None:
    shutil.copytree(PROJECTS / "smalltorch", tmp_path / "it's a project")
    file = tmp_path / "it's a project/torchyard.toml"
    extra = '[[override]]\nstage = "core"\nenv = { MINE = "$HOME `id`" }\ncmake = { OWN = "a b" }\n'
    with file.open("a", encoding="utf-8") as text:
        text.write(f"\n{extra}")
    place = tmp_path / "elsewhere"
    assert torchyard("toolchain", "activate", "cp311", "-f", file, "--output", place).code == 0
    folder = place / "linux-x86_64/cpu-openblas/cp311"
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(x C)\nmessage(STATUS OWN=${OWN})\n",
        encoding="utf-8",
    )
    out = in_shell(
        "bash",
        folder / "activate.bash",
        f"cd {tmp_path}; gcc a.c -o a && ./a",
        "type -p gcc ninja python pip cmake",
        'echo "$MINE"',
        "cmake $CMAKE_ARGS -S . -B build | grep OWN",
        f"{UNDO}; type -p gcc",
    )
    assert out.splitlines() == [
        *(f"{folder}/tools/{name}" for name in ("gcc", "ninja")),
        *(f"{folder}/env/bin/{name}" for name in ("python", "pip", "cmake")),
        "$HOME `id`",
        "-- OWN=a b",
        str(shutil.which("gcc")),
    ]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
def test_the_toolkit_of_a_gpu_is_there(torchyard: Command, tmp_path: Path) -> None:
    shutil.copytree(PROJECTS / "smalltorch", tmp_path / "project")
    file = tmp_path / "project/torchyard.toml"
    release = subprocess.run(["nvcc", "--version"], check=True, capture_output=True, text=True)
    (major, minor) = re.findall(r"release (\d+)\.(\d+)", release.stdout)[0]
    compute = f"cu{major}{minor}"
    file.write_text(file.read_text("utf-8").replace('"cpu"', f'"{compute}"'), encoding="utf-8")
    assert torchyard("toolchain", "activate", "cp311", "-f", file).code == 0
    folder = file.parent / f".torchyard/env/linux-x86_64/{compute}-openblas/cp311"
    code = tmp_path / "add.cu"
    code.write_text("__global__ void add(float *a) { *a += 1; }\n", encoding="utf-8")
    out = in_shell(
        "bash",
        folder / "activate.bash",
        f'cd {tmp_path}; "$CUDA_HOME/bin/nvcc" -ccbin "$CUDAHOSTCXX" -c add.cu && echo compiled',
        f'{UNDO}; echo "${{CUDAHOSTCXX-gone}}"',
    )
    assert out.splitlines() == ["compiled", "gone"]


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_tinytorch_is_compiled_and_imported_outside_of_torchyard(
    torchyard: Command, tmp_path: Path, shell: str
) -> None:
    project = copy_sample(tmp_path / "tinytorch")
    assert torchyard("toolchain", "activate", "cpu-openblas/cp312", "-f", project.file).code == 0
    source = tmp_path / "source"
    shutil.copytree(PROJECTS / "tinytorch", source)
    out = in_shell(
        shell,
        project.folder / BLOCK / f"cp312/activate.{shell}",
        f"cd {source}",
        "pip install --quiet --no-build-isolation --no-deps .",
        "cd /",
        "python -c 'import tinytorch; print(tinytorch.__file__, tinytorch.add([1.0], [2.0]))'",
    )
    assert out.strip().startswith(f"{project.folder / BLOCK}/cp312/env/lib/python")


@pytest.mark.slow
def test_an_extension_is_installed_by_plain_pip(torchyard: Command, tmp_path: Path) -> None:
    shutil.copytree(PROJECTS / "tinyext", tmp_path / "tinyext")
    file = tmp_path / "torchyard.toml"
    names = "--recipe extension --name tinyext --version 0.1.0 --path tinyext"
    cell = "--compute cpu --python cp311 --torch 2.13"
    assert torchyard("init", "-f", file, *names.split(), *cell.split()).code == 0
    locked = torchyard("lock", "-f", file)
    assert locked.code == 0, locked.err
    if "torch 2.13.0+cpu" not in locked.err:
        pytest.skip("the index has no torch without CUDA, which is 3 GB")
    made = torchyard("toolchain", "activate", "-f", file)
    assert made.code == 0, made.err
    out = in_shell(
        "bash",
        tmp_path / ".torchyard/env/linux-x86_64/cpu-torch2.13/cp311/activate.bash",
        f"cd {tmp_path}/tinyext; pip install --quiet --no-build-isolation --no-deps .; cd /",
        "python -c 'import torch, tinyext; print(tinyext.twice(torch.ones(2)).tolist())'",
    )
    assert out.strip() == "[2.0, 2.0]"
    refused = torchyard("develop", "-f", file)
    assert refused.code == 3
    assert "recipe `extension` has no core" in refused.err
