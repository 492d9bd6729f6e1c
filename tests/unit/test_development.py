"""A tree to develop in: a core is restored over what is there, and ninja's reasons are read."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from torchyard.errors import SelectionError
from torchyard.features.develop.use_case import find_development
from torchyard.host.locks import replace_bytes
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.result import File, Result, Tree
from torchyard.run.development import (
    RECORD_FILE,
    DevelopDir,
    Development,
    OpenDevelopment,
    restore_core,
)
from torchyard.run.sandbox import Enclosure
from torchyard.store.store import Store
from torchyard.store.trees import Writer
from torchyard.toolchain.build_tree import keep_recorded_times
from torchyard.toolchain.ninja import ExplainedBuild

OLD = 1_000_000_000_000_000_000

CORE = Task(
    id="core:demo-1.0/linux-x86_64/cpu-mkl",
    stage=Stage.CORE,
    stage_revision=1,
    scope="linux-x86_64/cpu-mkl",
    recipe="pytorch",
    fingerprint="0" * 64,
)


def stored_core(store: Store, folder: Path, files: Mapping[str, str]) -> Result:
    """Put a core whose files are old into a store."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(OLD, OLD))
    writer = Writer(store)
    tree = writer.add_tree(folder)
    log = writer.add_file(folder / next(iter(files)), "log.gz")
    spec = JobSpec(tasks=(CORE,))
    return Result(fingerprint=CORE.fingerprint, spec=spec, tree=tree, log=log)


def development(folder: Path, *, tree: Path | None = None, ready: bool = True) -> OpenDevelopment:
    """Make the directory of a development, with nothing in it."""
    spec = JobSpec(tasks=(CORE,))
    cell = "/".join(("demo-1.0", *folder.parts[-3:]))
    record = Development(
        cell=cell,
        core="0" * 64,
        tree=str(tree) if tree else None,
        file="torchyard.toml",
        enclosure=Enclosure("view"),
        tools={},
        ready=ready,
    )
    workdir = DevelopDir(folder, spec, tree)
    workdir.make_directories()
    made = OpenDevelopment(workdir, record)
    made.save(ready=ready)
    return made


def test_a_folder_of_a_tree_by_the_paths_in_it() -> None:
    digest = "0" * 64
    file = File(path="tree/build/a.o", digest=digest, size=1, mtime=1)
    other = File(path="treetop/a.o", digest=digest, size=1, mtime=1)
    whole = Tree(files=(file, other), links={"tree/l": "x", "l": "x"}, empty=("tree/e", "e"))
    below = whole.below("tree")
    assert [one.path for one in below.files] == ["build/a.o"]
    assert (below.links, below.empty) == ({"l": "x"}, ("e",))


def test_files_with_the_same_content_get_their_times_and_edited_ones_are_kept(
    tmp_path: Path,
) -> None:
    store = Store.at(str(tmp_path / "store"))
    files = {"tree/a.cpp": "int a;", "tree/b.cpp": "int b;", "tree/.git/HEAD": "0", "log": "x"}
    result = stored_core(store, tmp_path / "made", files)
    checkout = tmp_path / "checkout"
    (checkout / ".git").mkdir(parents=True)
    (checkout / "a.cpp").write_text("int a;", encoding="utf-8")
    (checkout / "c.cpp").write_text("int c;", encoding="utf-8")
    (checkout / "b.cpp").write_text("int B;", encoding="utf-8")
    edited = (checkout / "b.cpp").stat().st_mtime_ns
    restored = restore_core(store, result, "tree", checkout)
    assert sorted(file.path for file in restored) == ["a.cpp", "b.cpp"]
    assert (checkout / "a.cpp").stat().st_mtime_ns == OLD
    assert (checkout / "b.cpp").read_text("utf-8") == "int B;"
    assert (checkout / "b.cpp").stat().st_mtime_ns == edited
    assert not (checkout / ".git/HEAD").exists(), "a history of its own is left alone"
    assert (checkout / "c.cpp").exists()
    empty = tmp_path / "empty"
    restore_core(store, result, "tree", empty)
    assert sorted(p.name for p in empty.iterdir()) == [".git", "a.cpp", "b.cpp"]
    assert (empty / "b.cpp").stat().st_mtime_ns == OLD


def test_what_cmake_wrote_and_links_keep_their_times(tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text("x", encoding="utf-8")
    (tmp_path / "link").symlink_to("build.ninja")
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    names = ("build.ninja", "link", "missing")
    before = (tmp_path / "build.ninja").stat().st_mtime_ns
    files = [File(path=name, digest=digest, size=1, mtime=OLD) for name in names]
    keep_recorded_times(files, tmp_path)
    assert (tmp_path / "build.ninja").stat().st_mtime_ns == before


def test_why_ninja_makes_a_file() -> None:
    """Lines of ninja 1.13.0 that builds of tinytorch printed."""
    heard = ExplainedBuild()
    lines = """\
ninja explain: output a/math.cpp.o older than most recent input /src/a b.h (17 vs 18)
ninja explain: a/math.cpp.o is dirty
ninja explain: deps for 'c/stub.c.o' are missing
ninja explain: output build.ninja older than most recent input CMakeLists.txt (-1 vs 18)
ninja explain: command line changed for lib/libx.so
ninja explain: output lib/liby.so doesn't exist"""
    assert all(heard.listen(line) for line in lines.splitlines())
    assert not heard.listen("[1/2] Building CXX object a/math.cpp.o")
    assert heard.reason("a/math.cpp.o") == "/src/a b.h is newer"
    assert heard.reason("c/stub.c.o") == "this build had not made it"
    assert heard.reason("build.ninja") == "CMakeLists.txt is newer"
    assert heard.reason("lib/libx.so") == "its command changed"
    assert heard.reason("lib/liby.so") == "it did not exist"
    assert heard.reason("lib/libz.so") == ""


def test_paths_of_the_view_are_shown_as_those_of_the_machine(tmp_path: Path) -> None:
    tree = tmp_path / "checkout"
    made = development(tmp_path / "p/b/cp312", tree=tree)
    folder = made.workdir.folder
    said = "/mnt/torchyard/build/a.cpp:1 -I/mnt/torchyard/toolchain/blas/include"
    assert made.outside(said) == f"{tree}/a.cpp:1 -I{folder}/toolchain/blas/include"
    other = "-B/mnt/torchyard/tmp /mnt/torchyard/building /mnt/torchyard/build"
    assert made.outside(other) == f"-B{folder}/job/tmp {folder}/job/building {tree}"


def test_python_imports_a_project_from_the_tree(tmp_path: Path) -> None:
    made = development(tmp_path / "p/b/cp312")
    site = made.workdir.folder / "env/lib/python/site-packages"
    site.mkdir(parents=True)
    info = made.workdir.job / "tmp/metadata/demo-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: demo\n", encoding="utf-8")
    assert made.install_editable() == "demo-1.0"
    assert str(made.tree) in (site / "__editable__.demo-1.0.pth").read_text("utf-8")
    record = (site / "demo-1.0.dist-info/RECORD").read_text("utf-8")
    for line in record.splitlines():
        assert (site / line.split(",")[0]).is_file()
    origin = msgspec.json.decode((site / "demo-1.0.dist-info/direct_url.json").read_bytes())
    assert origin == {"url": made.tree.as_uri(), "dir_info": {"editable": True}}


def test_which_tree_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, home = str(tmp_path / "torchyard.toml"), tmp_path / ".torchyard/develop"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SelectionError, match="nothing is developed"):
        find_development(file, None)
    one = development(home / "p/cpu-mkl/cp311", tree=tmp_path / "one")
    assert find_development(file, None).record == one.record
    development(home / "p/cpu-mkl/cp312", ready=False)
    with pytest.raises(SelectionError, match="several trees"):
        find_development(file, None)
    assert find_development(file, "cp311").record == one.record
    with pytest.raises(SelectionError, match="partly set up"):
        find_development(file, "cpu-mkl/cp312")
    with pytest.raises(SelectionError, match="`p311` matches no cell"):
        find_development(file, "p311")
    (tmp_path / "one/csrc").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "one/csrc")
    assert find_development(file, None).record == one.record
    three = development(home / "p/cpu-mkl/cp313")
    monkeypatch.chdir(three.tree)
    assert find_development("torchyard.toml", None).record == three.record


def test_a_record_is_read_back(tmp_path: Path) -> None:
    made = development(tmp_path / "p/b/cp312", tree=tmp_path)
    again = OpenDevelopment.at(made.workdir.folder)
    assert (again.record, again.tree) == (made.record, tmp_path)
    assert (made.workdir.folder / RECORD_FILE).exists()


def test_it_is_installed_once_after_ninja_made_something(tmp_path: Path) -> None:
    made = development(tmp_path / "p/b/cp312")
    log = made.tree / "build/.ninja_log"
    log.parent.mkdir()
    replace_bytes(log, b"# ninja log v7\n")
    os.utime(log, ns=(OLD, OLD))
    made.install((), lambda _: None)
    stamp = made.workdir.folder / "installed"
    os.utime(stamp, ns=(OLD + 5, OLD + 5))
    made.install((), lambda _: None)
    assert stamp.stat().st_mtime_ns == OLD + 5
    os.utime(log, ns=(OLD + 9, OLD + 9))
    made.install((), lambda _: None)
    assert stamp.stat().st_mtime_ns > OLD + 9
