"""`torchyard develop` on tinytorch: a finished core, edited, compiled and imported."""

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.support.forked import TORCHYARD
from tests.support.recipe import PREFIX, SAMPLE, Project, call, copy_sample, shared_sample

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(shutil.which, ("gcc", "bwrap"))), reason="there is no gcc or no bwrap here"
    ),
]

BLOCK = "cpu-openblas"
IMPORT = "import tinytorch; print(tinytorch.__file__, tinytorch.add([1.0], [2.0]))"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Make a copy of the project beside a store that has its core; developments are its own."""
    with shared_sample(tmp_path_factory) as shared:
        shared.torchyard("build", f"core:{PREFIX}/{BLOCK}")
        own = copy_sample(tmp_path_factory.mktemp("develop") / "tinytorch")
        shared.own_store(own.store)
    return own


@pytest.fixture(scope="module")
def begun(project: Project) -> str:
    return project.torchyard("develop", f"{BLOCK}/cp312", "--from-store")


def folder_of(project: Project, python: str) -> Path:
    return project.folder / ".torchyard/develop/linux-x86_64" / BLOCK / python


def edit(path: Path) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write("// edited\n")


def in_view(project: Project, *words: str) -> str:
    """Run a command in the tree; options after it are its own."""
    return call(*TORCHYARD, "develop", "run", "-f", project.file, *words)


def planned(project: Project) -> set[str]:
    """What ninja itself would compile and link."""
    told = in_view(project, "ninja", "-C", "build", "-n", "-v")
    return set(re.findall(r" -o (\S+\.(?:o|so)|bin/\S+) ", told))


def test_nothing_of_the_core_is_compiled_and_it_can_be_imported(
    project: Project, begun: str
) -> None:
    assert re.search(r"units of the core that were compiled +0\n", begun)
    assert re.search(r"other units that were compiled +4\n", begun)
    folder = folder_of(project, "cp312")
    script = f". {folder}/activate.bash; cd /; python -c '{IMPORT}'; pip list"
    told = call("bash", "--norc", "-euc", script)
    assert told.startswith(f"{folder}/job/build/tinytorch/__init__.py [3.0]")
    assert re.search(r"tinytorch +1\.2\.0\+cpu +\S+/job/build\n", told)
    commands = json.loads((folder / "job/build/compile_commands.json").read_text("utf-8"))
    sources = {Path(entry["file"]) for entry in commands}
    assert folder / "job/build/aten/math.cpp" in sources
    assert all(source.is_file() for source in sources)
    assert "/mnt/torchyard" not in json.dumps(commands)


@pytest.mark.usefixtures("begun")
@pytest.mark.parametrize("name", ["aten/math.cpp", "c10/error.h", "csrc/stub.c"])
def test_an_edited_file_compiles_what_ninja_says_and_no_more(project: Project, name: str) -> None:
    tree = folder_of(project, "cp312") / "job/build"
    edit(tree / name)
    expected = planned(project)
    assert expected
    built = json.loads(project.torchyard("develop", "build", "--json"))
    made = {one["output"]: one for one in built["made"]}
    assert set(made) == expected
    units = [one for one in built["made"] if one["kind"] == "unit"]
    assert units
    assert {one["why"] for one in units} == {f"{name} is newer"}
    assert json.loads(project.torchyard("develop", "build", "--json"))["made"] == []


BARE = """\
began=$EPOCHREALTIME
ninja -C build >&2
cmake --install build --prefix $PWD/tinytorch >&2
python -c 'import tinytorch'
echo $began $EPOCHREALTIME"""


@pytest.mark.usefixtures("begun")
def test_the_seconds_from_edit_to_import_as_a_ratio_to_bare_ninja(project: Project) -> None:
    """Measured with all that torchyard does, from its start on; ninja in a shell that is there."""
    folder = folder_of(project, "cp312")
    source = folder / "job/build/aten/math.cpp"
    script = f". {folder}/activate.bash; python -c 'import tinytorch'"
    ours, bare = [], []
    for _ in range(3):
        edit(source)
        began = time.monotonic()
        project.torchyard("develop", "build")
        call("bash", "--norc", "-euc", script)
        ours.append(time.monotonic() - began)
        edit(source)
        start, end = map(float, in_view(project, "bash", "-euc", BARE).split())
        bare.append(end - start)
    print(f"from edit to import: {min(ours):.2f} s, bare ninja {min(bare):.2f} s")
    assert min(ours) < 3 * min(bare)


@pytest.mark.usefixtures("begun")
def test_an_error_names_the_file_where_it_is_edited(project: Project) -> None:
    source = folder_of(project, "cp312") / "job/build/aten/matmul.cpp"
    text = source.read_text("utf-8")
    source.write_text(f"{text}oops\n", encoding="utf-8")
    told = project.refused("develop", "build")
    source.write_text(text, encoding="utf-8")
    assert f"{source}:{text.count(chr(10)) + 1}:1: error:" in told
    assert "hint: look around: torchyard develop run" in told
    project.torchyard("develop", "build")


@pytest.mark.usefixtures("begun")
def test_it_is_begun_once_and_edits_stay(project: Project) -> None:
    source = folder_of(project, "cp312") / "job/build/aten/parallel.cpp"
    edit(source)
    again = project.torchyard("develop", f"{BLOCK}/cp312")
    assert re.search(r"units of the core that were compiled +0\n", again)
    assert source.read_text("utf-8").endswith("// edited\n")


def test_in_a_checkout_only_what_differs_is_compiled(project: Project, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(SAMPLE, checkout, ignore=shutil.ignore_patterns(".torchyard"))
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "--quiet"), ("add", "-A"), ("commit", "--quiet", "-m", "all")):
        subprocess.run([*git, *words], cwd=checkout, check=True)
    edit(checkout / "aten/matmul.cpp")
    edit(project.folder / "aten/matmul.cpp")  # the file's own source, whose core is in no store
    try:
        begun = project.torchyard("develop", f"{BLOCK}/cp311", "--from-store", "--source", checkout)
        refused = project.refused("develop", f"{BLOCK}/cp312", "--source", tmp_path)
    finally:
        shutil.copy2(SAMPLE / "aten/matmul.cpp", project.folder / "aten/matmul.cpp")
    assert re.search(r"units of the core that were compiled +1\n", begun)
    assert "aten/CMakeFiles/tt_cpu.dir/matmul.cpp.o: aten/matmul.cpp is newer" in begun
    assert "is developed in" in refused or "has a directory" in refused
    status = subprocess.run(
        ["git", "status", "--short"], cwd=checkout, capture_output=True, text=True, check=True
    )
    assert status.stdout.split("\n")[0] == " M aten/matmul.cpp"
    told = in_view(project, "--cell", "cp311", "python", "-c", IMPORT)
    assert told.startswith("/mnt/torchyard/build/tinytorch/__init__.py [3.0]")


def test_a_core_that_is_in_no_store_is_not_built_by_surprise(project: Project) -> None:
    told = project.refused("develop", "cpu-mkl/cp312", "--from-store")
    assert f"the store has no finished core:{PREFIX}/cpu-mkl" in told
    assert not folder_of(project, "cp312").with_name("cpu-mkl").exists()
