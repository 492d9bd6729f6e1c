"""A build that needs more memory than there is: bare ninja dies of it, ours slows down."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.helpers import ROOT

from torchyard.host.cgroups import control_groups

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed"),
]

LIMIT = 3 * 10**9
UNITS = 10
UNITS_OF_EXTENSION = 16
TOOLS = str(Path(sys.executable).parent)

# Each instance of the template costs the compiler 10 kB and 0.1 ms.
UNIT = """\
template <int N, int K> struct Link {
    static constexpr int value = Link<N - 1, K>::value + 1;
    int room[N + 1];
    int f(int x) { return x + N * K; }
    Link(int) {}
    Link(Link const&) {}
    ~Link() {}
};
template <int K> struct Link<0, K> { static constexpr int value = K; };
"""
YARD = """\
[project]
name = "large"
version = "1.0"
[source]
path = "code"
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
blas = ["generic"]
python = ["cp312"]
package = ["wheel"]
[[steps.core]]
run = ["ninja", "-C", "{source}"]
"""
EXTENSION = """\
[project]
name = "heavy"
version = "1.0"
recipe = "extension"
[source]
path = "code"
[toolchain]
[matrix]
platform = ["linux-x86_64"]
torch = ["torch2.13"]
compute = ["cpu"]
python = ["cp311"]
package = ["wheel"]
"""
SETUP = """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

units = [f"{n}.cpp" for n in range(%d)]
setup(
    name="heavy",
    version="1.0",
    py_modules=[],
    ext_modules=[CppExtension("heavy", units, extra_compile_args=["-O1", "-ftemplate-depth=900"])],
    cmdclass={"build_ext": BuildExtension},
)
"""
CHAINS, LENGTH = 100, 800


class Run(NamedTuple):
    """How a build ended."""

    code: int
    seconds: float
    peak: int
    said: str


@contextmanager
def memory_group() -> Iterator[Path]:
    """Make a cgroup with the limit below our own, or where version 2 allows it above."""
    groups = (group.folder for group in control_groups("memory"))
    found = [folder for folder in groups if (folder / "cgroup.procs").exists()]
    for folder in found:
        control = folder / "cgroup.subtree_control"
        if (folder / "memory.usage_in_bytes").exists() or (
            control.exists() and "memory" in control.read_text(encoding="utf-8").split()
        ):
            group = folder / f"torchyard-test-{os.getpid()}"
            break
    else:
        pytest.skip("there is no cgroup that limits memory")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"cgroups can't be made here: {error}")
    try:
        for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max"):
            if (group / name).exists():
                (group / name).write_text(str(LIMIT), encoding="utf-8")
        if (group / "memory.swap.max").exists():
            (group / "memory.swap.max").write_text("0", encoding="utf-8")
        yield group
    finally:
        deadline = time.monotonic() + 10
        while pids := (group / "cgroup.procs").read_text(encoding="utf-8").split():
            for pid in pids:
                os.kill(int(pid), signal.SIGKILL)
            assert time.monotonic() < deadline
            time.sleep(0.1)
        group.rmdir()


def write(folder: Path, small: int) -> None:
    """Write a build of many large units, after some commands that need next to nothing."""
    folder.mkdir(parents=True)
    names = [f"small{n}" for n in range(small)]
    lines = ["rule cc", "  command = g++ -c $in -o $out", "rule small", "  command = sleep 0.4"]
    lines += [f"build {name}: small" for name in names]
    lines += [f"build {n}.o: cc {n}.cpp || {' '.join(names)}" for n in range(UNITS)]
    (folder / "build.ninja").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_units(folder, UNITS)


def write_units(folder: Path, number: int) -> None:
    chains = [f"static_assert(Link<{LENGTH}, {n}>::value == {LENGTH + n});" for n in range(CHAINS)]
    for unit in range(number):
        (folder / f"{unit}.cpp").write_text(UNIT + "\n".join(chains) + "\n", encoding="utf-8")


def write_extension(folder: Path) -> None:
    """Write an extension of many large units, which torch's BuildExtension compiles by ninja."""
    folder.mkdir(parents=True)
    write_units(folder, UNITS_OF_EXTENSION)
    (folder / "setup.py").write_text(SETUP % UNITS_OF_EXTENSION, encoding="utf-8")
    requires = '[build-system]\nrequires = ["setuptools", "torch", "ninja"]\n'
    backend = 'build-backend = "setuptools.build_meta"\n'
    (folder / "pyproject.toml").write_text(requires + backend, encoding="utf-8")


def bare(folder: Path, jobs: int) -> Run:
    write(folder, small=0)
    return build(folder, "ninja", f"-j{jobs}")


def guarded(folder: Path, slots: int, small: int = 0) -> Run:
    write(folder / "code", small)
    file = folder / "torchyard.toml"
    file.write_text(YARD, encoding="utf-8")
    command = [sys.executable, "-m", "torchyard", "build", "core:*", "-f", str(file)]
    return build(folder, *command, "--slots", str(slots))


def pip_wheel(folder: Path, python: Path, jobs: int | None = None) -> Run:
    """Build the extension by pip; by default, ninja starts two jobs more than processors."""
    write_extension(folder)
    limit = {"MAX_JOBS": str(jobs)} if jobs else {}
    words = ["pip", "wheel", "--no-build-isolation", "--no-deps", "-q", "-w", "dist", "."]
    path = {"PATH": f"{python.parent}:{os.environ['PATH']}"}
    return build(folder, str(python), "-m", *words, **limit, **path)


def build(folder: Path, *argv: str, **env: str) -> Run:
    paths = {"PYTHONPATH": str(ROOT / "src"), "PATH": f"{TOOLS}:{os.environ['PATH']}"}
    with memory_group() as group:
        begin = time.monotonic()
        done = subprocess.run(
            ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(group / "cgroup.procs"), *argv],
            cwd=folder,
            env={**os.environ, **paths, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - begin
        peaks = (group / name for name in ("memory.max_usage_in_bytes", "memory.peak"))
        peak = next((int(path.read_text("utf-8")) for path in peaks if path.exists()), 0)
    ended = "finished" if done.returncode == 0 else f"failed ({done.returncode})"
    print(f"{folder.name}: {ended} after {seconds:.1f} s, peak {peak / 1e9:.2f} GB")
    return Run(done.returncode, seconds, peak, done.stdout)


def test_a_build_beyond_memory_finishes_and_loses_little_time(tmp_path: Path) -> None:
    too_many = bare(tmp_path / "j16", 16)
    fixed = [bare(tmp_path / f"j{jobs}", jobs) for jobs in (1, 2, 3)]
    ours = guarded(tmp_path / "guarded", 16)
    print(ours.said)
    assert too_many.code != 0
    assert ours.code == 0
    assert ours.seconds <= 1.3 * min(run.seconds for run in fixed if run.code == 0)


def test_a_build_that_turns_out_large_too_late_finishes(tmp_path: Path) -> None:
    surprised = guarded(tmp_path / "surprised", 16, small=100)
    print(surprised.said)
    assert "slots    16 of 16" in surprised.said
    assert "compilers paused" in surprised.said
    assert surprised.code == 0


def test_an_extension_beyond_memory_finishes(tmp_path: Path, torch_wheel: Path) -> None:
    python = tmp_path / "venv/bin/python"
    uv = [f"{TOOLS}/uv", "-q"]
    subprocess.run([*uv, "venv", "--seed", "-p", "3.11", python.parents[1]], check=True)
    wanted = [str(torch_wheel), "setuptools", "wheel", "ninja", "numpy"]
    subprocess.run([*uv, "pip", "install", "-p", str(python), *wanted], check=True)
    default = pip_wheel(tmp_path / "default", python)
    fixed = [pip_wheel(tmp_path / f"j{jobs}", python, jobs) for jobs in (1, 2, 3)]
    ours = tmp_path / "ours"
    write_extension(ours / "code")
    (ours / "torchyard.toml").write_text(EXTENSION, encoding="utf-8")
    torchyard = [sys.executable, "-m", "torchyard"]
    subprocess.run([*torchyard, "lock"], cwd=ours, check=True)
    slots = str((os.cpu_count() or 1) + 2)
    guarded = build(ours, *torchyard, "build", "bindings:*", "--slots", slots)
    print(guarded.said)
    assert default.code != 0
    assert guarded.code == 0
    assert guarded.seconds <= 1.2 * min(run.seconds for run in fixed if run.code == 0)
