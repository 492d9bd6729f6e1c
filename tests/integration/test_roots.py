"""The sample is built, checked and tested in a root of Debian 13 that torchyard makes."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.forked import TORCHYARD
from tests.support.recipe import PREFIX, Project, call, copy_sample, needs_debootstrap, run

from torchyard.toolchain.debian_root import RootRequest, lock_of, make_debian_root
from torchyard.toolchain.root import identify_root, packages_in, run_in_root
from torchyard.toolchain.root_image import find_root

pytestmark = [pytest.mark.integration, pytest.mark.slow, needs_debootstrap]

CELL = f"{PREFIX}/cpu-openblas"
THROWS = """void may_throw(int n) { if (n > 7) throw n; }
void f() noexcept { try { may_throw(0); } catch (long) { } }
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a root with the Python of Debian 13, and one that is copied into it."""
    folder = tmp_path_factory.mktemp("roots")
    words = ("trixie", folder / "root", "--python", "cp312", "--lock", folder / "root.lock")
    said = call(*TORCHYARD, "toolchain", "root", *words)
    assert "debian 13, " in said.splitlines()[-1]
    return folder


@pytest.fixture(scope="module")
def project(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Copy the sample, to be built in that root."""
    project = copy_sample(tmp_path_factory.mktemp("project") / "tinytorch")
    text = project.file.read_text(encoding="utf-8")
    assert 'compiler = "gcc"' in text
    root = f'compiler = "gcc"\nroot = "{made / "root"}"'
    project.file.write_text(text.replace('compiler = "gcc"', root), encoding="utf-8")
    return project


def test_the_lock_names_all_packages(made: Path) -> None:
    lines = (made / "root.lock").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 100
    assert any(line.startswith("gcc=") for line in lines)


def test_the_toolchain_of_a_file_is_that_of_its_root(project: Project) -> None:
    document = json.loads(project.torchyard("toolchain", "--json"))
    assert document["parts"]["root"].startswith("debian 13, ")
    assert document["parts"]["compiler"].startswith("gcc 14")


def test_doctor_finds_nothing_wrong_in_a_root(project: Project) -> None:
    document = json.loads(project.torchyard("doctor", "*/cpu-openblas/cp31[23]/*", "--json"))
    assert document["findings"] == []
    assert any("gcc 14" in one["what"] for one in document["seen"])


@pytest.mark.parametrize("python", ["cp312", "cp313"])
def test_wheels_are_built_with_the_compiler_and_pythons_of_a_root(
    project: Project, tmp_path: Path, python: str
) -> None:
    jobs = [f"{stage}:{CELL}/{python}/wheel" for stage in ("package", "check", "smoke")]
    project.torchyard("build", *jobs)
    wheel = project.package(f"cpu-openblas/{python}/wheel", tmp_path)
    assert python in wheel.name
    said = project.torchyard("store", "show", f"core:{CELL}", "--json")
    (core,) = json.loads(said)["results"]
    assert core["spec"]["tasks"][-1]["settings"]["identity"]["root"].startswith("debian 13, ")


def test_another_root_under_the_same_path_is_refused(project: Project, made: Path) -> None:
    """A plan is for the packages that the root had when it was made."""
    said = project.torchyard("plan", "--json", f"core:{CELL}")
    status = made / "root/var/lib/dpkg/status"
    before = status.read_text(encoding="utf-8")
    more = "Package: x\nStatus: install ok installed\nArchitecture: all\nVersion: 1\n"
    status.write_text(f"{before}\n{more}", encoding="utf-8")
    try:
        assert project.torchyard("plan", "--json", f"core:{CELL}") != said
    finally:
        status.write_text(before, encoding="utf-8")


def test_an_archive_of_a_root_is_the_same_root(made: Path, tmp_path: Path) -> None:
    """It is packed with devices and links, unpacked, and its compiler works."""
    packed = tmp_path / "root.tar.zst"
    call("tar", "-C", made / "root", "--zstd", "-cf", packed, ".")
    unpacked = find_root(packed.name, tmp_path, tmp_path / "work")
    assert identify_root(unpacked) == identify_root(str(made / "root"))
    line = "echo 'int main() {}' | gcc -x c - -o main && ./main && python3 -c 'import ssl'"
    (tmp_path / "scratch").mkdir()
    run_in_root(unpacked, ["bash", "-c", line], folder=tmp_path / "scratch")


def test_a_root_that_exists_is_not_made_again(made: Path) -> None:
    done = run(*TORCHYARD, "toolchain", "root", "trixie", made / "root")
    assert done.returncode == 7
    assert "exists already" in done.stderr


def test_a_package_that_stands_alone_is_there_without_its_dependencies(tmp_path: Path) -> None:
    """Debian's headers of cuDNN's frontend require an installer that downloads cuDNN."""
    request = RootRequest(suite="trixie", components=("contrib",), alone=("libcudnn-frontend-dev",))
    make_debian_root(request, tmp_path / "root", print)
    assert (tmp_path / "root/usr/include/cudnn_frontend.h").is_file()
    lock = lock_of(packages_in(str(tmp_path / "root")))
    assert any(line.startswith("libcudnn-frontend-dev=") for line in lock)
    assert not any(line.startswith("nvidia-cudnn") for line in lock)
    make_debian_root(replace(request, exactly=lock), tmp_path / "again", print)
    assert lock_of(packages_in(str(tmp_path / "again"))) == lock


def test_an_older_compiler_links_with_libraries_of_the_newer_one(tmp_path: Path) -> None:
    """CUDA 12.4 takes g++-13, and Debian's libprotobuf needs libstdc++'s symbols of g++-14."""
    root = str(tmp_path / "root")
    make_debian_root(RootRequest(suite="trixie", packages=("g++-13",)), Path(root), print)
    for name, text in (("lib.cc", THROWS), ("main.cc", "void f() noexcept; int main() { f(); }")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    for line in ("g++ -shared -fPIC lib.cc -o lib.so", "g++-13 main.cc ./lib.so -o main", "./main"):
        run_in_root(root, line.split(), folder=tmp_path)
    assert "__cxa_call_terminate@CXXABI_1.3.15" in call("nm", "-D", tmp_path / "lib.so")
