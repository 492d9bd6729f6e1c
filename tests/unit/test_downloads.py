"""What a project downloads while it is built is fetched before, and found without a network.

All addresses are below `example.invalid`, which exists nowhere.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Protocol

import pytest
from tests.support.helpers import EXTENSION, Command, config_of, plan_of

from torchyard.config.load import load_config
from torchyard.errors import ConfigError, HostError
from torchyard.model.config import DeclaredDownload
from torchyard.model.recipe import Stage
from torchyard.plan.build import make_plan
from torchyard.plan.select import EVERYTHING
from torchyard.store.store import Store
from torchyard.store.trees import fetch_tree
from torchyard.toolchain.downloads import FOLDER, keep_downloads, offer_downloads

AWAY = "https://example.invalid"
BASIC = """\
[project]
name = "demo"
version = "1.0"
[source]
git = "https://example.invalid/demo"
rev = "v1"
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
blas = ["openblas"]
python = ["cp312"]
package = ["wheel"]
"""
PROJECT = f"""\
cmake_minimum_required(VERSION 3.20)
project(demo NONE)
include(FetchContent)
FetchContent_Declare(part GIT_REPOSITORY {AWAY}/part.git GIT_TAG v1)
FetchContent_Declare(packed URL {AWAY}/v1.tar.gz)
FetchContent_MakeAvailable(part packed)
file(DOWNLOAD {AWAY}/table.txt ${{CMAKE_BINARY_DIR}}/table.txt STATUS status)
file(READ ${{part_SOURCE_DIR}}/part.txt part)
file(READ ${{packed_SOURCE_DIR}}/packed.txt packed)
file(READ ${{CMAKE_BINARY_DIR}}/table.txt table)
message(STATUS "found ${{part}} ${{packed}} ${{table}}")
include(ExternalProject)
ExternalProject_Add(more GIT_REPOSITORY {AWAY}/part GIT_TAG COMMIT
  CONFIGURE_COMMAND "" INSTALL_COMMAND ""
  BUILD_COMMAND ${{CMAKE_COMMAND}} -E cat <SOURCE_DIR>/part.txt)
"""
PATCH = """\
--- a/points.cpp
+++ b/points.cpp
@@ -1 +1,2 @@
+#include <memory>
 #include <vector>
"""
URLLIB = f"""\
from urllib.request import urlopen
print(urlopen("{AWAY}/table.txt").read().decode())
"""


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def commit(tmp_path: Path) -> str:
    """Return the commit of the repository `part`, whose history is older."""
    folder = tmp_path / "part"
    folder.mkdir()
    git(folder, "init", "-q")
    for text in ("an old part", "a part"):
        (folder / "part.txt").write_text(text, encoding="utf-8")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", text)
    return git(folder, "rev-parse", "HEAD")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def packed(folder: Path) -> Path:
    (folder / "packed.txt").write_text("a packed one", encoding="utf-8")
    with tarfile.open(folder / "v1.tar.gz", "w:gz") as tar:
        tar.add(folder / "packed.txt", "packed-1/packed.txt")
    return folder / "v1.tar.gz"


@pytest.fixture
def downloads(tmp_path: Path, commit: str) -> tuple[DeclaredDownload, ...]:
    (tmp_path / "table.txt").write_text("a table", encoding="utf-8")
    files = (packed(tmp_path), tmp_path / "table.txt")
    return (
        DeclaredDownload(git="part", rev="v1", commit=commit, instead_of=f"{AWAY}/part"),
        *(
            DeclaredDownload(archive=one.name, sha256=digest(one), instead_of=f"{AWAY}/{one.name}")
            for one in files
        ),
    )


class Build(Protocol):
    def __call__(self, *argv: str) -> str: ...


@pytest.fixture
def build(tmp_path: Path, downloads: tuple[DeclaredDownload, ...], commit: str) -> Build:
    """Return what runs a command in the project, with what was kept for it."""
    source = tmp_path / "out"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(PROJECT.replace("COMMIT", commit), encoding="utf-8")
    (source / "get.py").write_text(URLLIB, encoding="utf-8")
    keep_downloads(downloads, tmp_path, source)
    shutil.rmtree(tmp_path / "part")
    copy = tmp_path / "build"
    shutil.copytree(source, copy, ignore=lambda *_: [FOLDER])
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)} | offer_downloads(source, copy)

    def run(*argv: str) -> str:
        done = subprocess.run(argv, cwd=copy, env=env, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.skipif(not shutil.which("cmake"), reason="CMake is not installed")
def test_cmake_finds_repositories_archives_and_files(build: Build) -> None:
    assert "found a part a packed one a table" in build("cmake", "-S", ".", "-B", "made")
    assert "a part" in build("cmake", "--build", "made")


def test_python_and_git_find_them(build: Build, commit: str) -> None:
    assert build(sys.executable, "get.py") == "a table\n"
    for address in (f"{AWAY}/part", f"{AWAY}/part.git", f"{AWAY}/part/"):
        build("git", "clone", "-q", "--branch", "v1", address, "cloned")
        assert build("git", "-C", "cloned", "log", "--format=%H %s").strip() == f"{commit} a part"
        build("rm", "-rf", "cloned")


def test_pip_finds_packages(tmp_path: Path) -> None:
    """The wheel of a package that is here stands for one in an index."""
    wheel = tmp_path / "demo_part-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as zipped:
        zipped.writestr("demo_part.py", "")
        info = "demo_part-1.0.dist-info"
        zipped.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: demo-part\nVersion: 1.0\n"
        )
        zipped.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        zipped.writestr(f"{info}/RECORD", "")
    (tmp_path / "out").mkdir()
    one = DeclaredDownload(archive=wheel.name, sha256=digest(wheel))
    keep_downloads((one,), tmp_path, tmp_path / "out")
    env = offer_downloads(tmp_path / "out", tmp_path / "out")
    argv = [sys.executable, "-m", "pip", "download", "-q", "--dest", "got", "demo-part"]
    subprocess.run(argv, cwd=tmp_path, env={"HOME": str(tmp_path), **env}, check=True)
    assert (tmp_path / "got" / wheel.name).is_file()


def test_a_submodule_that_an_sdist_lacks_is_put_into_the_source(
    tmp_path: Path, commit: str
) -> None:
    (tmp_path / "out/third_party/part").mkdir(parents=True)
    here = DeclaredDownload(git="part", commit=commit, to="third_party/part")
    file = packed(tmp_path)
    there = DeclaredDownload(archive=file.name, sha256=digest(file), to="third_party/packed")
    keep_downloads((here, there), tmp_path, tmp_path / "out")
    made = {path.relative_to(tmp_path / "out").as_posix() for path in tmp_path.rglob("out/**/*.*")}
    assert made == {"third_party/part/part.txt", "third_party/packed/packed.txt"}
    assert not offer_downloads(tmp_path / "out", tmp_path / "out")


def test_what_is_kept_has_the_same_bytes_each_time(
    tmp_path: Path, downloads: tuple[DeclaredDownload, ...]
) -> None:
    pictures = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        keep_downloads(downloads, tmp_path, tmp_path / name)
        files = (path for path in (tmp_path / name).rglob("*") if path.is_file())
        pictures.append({str(path.relative_to(tmp_path / name)): digest(path) for path in files})
    assert pictures[0] == pictures[1]


def test_a_source_can_not_lead_a_download_elsewhere(tmp_path: Path, commit: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/third_party").symlink_to(tmp_path)
    inside = DeclaredDownload(git="part", commit=commit, to="third_party/new")
    with pytest.raises(HostError, match=r"`third_party/new` leads out of the source"):
        keep_downloads((inside,), tmp_path, tmp_path / "out")
    assert not (tmp_path / "new").exists()


def test_what_is_missing_is_said_with_its_value(tmp_path: Path, commit: str) -> None:
    file = packed(tmp_path)
    (tmp_path / "out").mkdir()
    git(tmp_path / "part", "tag", "v1")
    for one, value in (
        (DeclaredDownload(git="part", rev="v1"), commit),
        (DeclaredDownload(git="part"), commit),
        (DeclaredDownload(archive=file.name), digest(file)),
    ):
        with pytest.raises(HostError) as refused:
            keep_downloads((one,), tmp_path, tmp_path / "out")
        assert value in f"{refused.value} {refused.value.diagnostics[0].hint}"


def test_the_source_of_an_extension_is_patched_and_has_its_downloads(
    torchyard: Command, tmp_path: Path, commit: str
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/points.cpp").write_text("#include <vector>\n", encoding="utf-8")
    (tmp_path / "memory.patch").write_text(PATCH, encoding="utf-8")
    also = f'[[source.also]]\ngit = "part"\ncommit = "{commit}"\nto = "third_party/part"\n'
    lines = f'[source]\npath = "project"\npatches = ["memory.patch"]\n{also}'
    text = re.sub(r"\[source\]\n.*?(?=\[)", lines, EXTENSION, count=1, flags=re.DOTALL)
    file = tmp_path / "torchyard.toml"
    file.write_text(text, encoding="utf-8")
    done = torchyard("build", "source:*", "-f", file, "--store", tmp_path / "store")
    assert done.code == 0, done.err
    plan = make_plan(load_config(str(file)), EVERYTHING)
    (job,) = (job for job in plan.jobs if job.stage is Stage.SOURCE)
    store = Store.at(str(tmp_path / "store"))
    fetch_tree(store, store.get(job.fingerprint, job.identifier).tree, tmp_path / "got")
    patched = (tmp_path / "got/points.cpp").read_text(encoding="utf-8")
    assert patched == "#include <memory>\n#include <vector>\n"
    assert (tmp_path / "got/third_party/part/part.txt").read_text(encoding="utf-8") == "a part"


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ("", "[[source.also]] needs one of `git` and `archive`"),
        ('git = "x"\narchive = "y"', "[[source.also]] needs one of"),
        ('git = "x"\ncommit = "v1"', "`v1` is not a commit"),
        ('archive = "ftp://x/y"', "`ftp://x/y` is not the address of an archive"),
        ('archive = "y"\nsha256 = "123"', "`123` is not a sha256"),
        ('git = "x"\nto = "../y"', "`../y` is not in the source"),
    ],
)
def test_a_declaration_that_is_wrong_is_refused(lines: str, what: str) -> None:
    with pytest.raises(ConfigError) as refused:
        config_of(f"{BASIC}[[source.also]]\n{lines}\n")
    assert what in str(refused.value)


def test_only_what_is_fetched_is_part_of_the_fingerprint() -> None:
    def source_of(lines: str) -> str:
        jobs = plan_of(f"{BASIC}[[source.also]]\n{lines}").jobs
        return next(job.fingerprint for job in jobs if job.stage == "source")

    first = source_of(f'git = "{AWAY}/x"\ncommit = "{"1" * 40}"\n')
    assert first != source_of(f'git = "{AWAY}/x"\ncommit = "{"2" * 40}"\n')
    mirror = f'git = "https://mirror.invalid/x"\ninstead_of = "{AWAY}/x"\ncommit = "{"1" * 40}"\n'
    assert first == source_of(mirror)
