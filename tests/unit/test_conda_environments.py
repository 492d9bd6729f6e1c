"""Conda environments as a toolchain: solved, locked, planned, and laid out as a root."""

import json
import tarfile
from io import BytesIO
from pathlib import Path

import msgspec
import pytest
from tests.support.conda import SUBDIR, index, make_package
from tests.support.helpers import Command, config_of

from torchyard.config.load import load_config
from torchyard.errors import BuildError, ConfigError, HostError
from torchyard.host.system_view import parts_of_root
from torchyard.model.job_spec import JobSpec
from torchyard.model.lock import BUILD, HOST, conda_packages
from torchyard.model.recipe import Stage
from torchyard.package.conda.linked import Environments, survey_environments
from torchyard.package.conda.metadata import CondaBuild, CondaKind, describe
from torchyard.plan.build import make_plan
from torchyard.plan.job_specs import make_job_spec
from torchyard.run.conditions import Conditions, choose_sandbox, with_found_root
from torchyard.run.provision import fetches_wheels
from torchyard.toolchain.conda_prefix import installed_packages, keep_run_exports
from torchyard.toolchain.conda_root import find_conda_root
from torchyard.workspace.lock import lock_environments

FILE = """\
[project]
name = "torch"
version = "2.14.0"
[source]
git = "https://example.org/pytorch"
rev = "v2.14.0"
[toolchain.conda]
channels = ["./channel"]
build = ["bash", "coreutils", "sysroot_linux-64"]
host = ["library"]
[build]
requires = []
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
blas = ["openblas"]
python = ["cp311", "cp312"]
package = ["conda"]
"""
NAMES = ("core", "cp311", "cp312")
SHOWN = ["bin", "conda.lock", "etc", "lib64", "opt", "usr"]
SYSROOT = "x86_64-conda-linux-gnu/sysroot"
FILES = {
    "bash": ("bin/bash",),
    "coreutils": ("bin/env",),
    "sysroot_linux-64": (f"{SYSROOT}/lib64/ld.so", f"{SYSROOT}/usr/lib64/libc.so"),
    "library": ("lib/liblibrary.so",),
}


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    channel = tmp_path_factory.mktemp("channel")
    for name, files in FILES.items():
        tree = channel.with_name(f"tree-{name}")
        for file in files:
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            (tree / file).write_text(file, encoding="utf-8")
        make_package(channel / SUBDIR, name, "1.0", "0", tree)
    for version in ("3.11", "3.12"):
        tree, tag = channel.with_name(f"tree-{version}"), f"cp{version.replace('.', '')}"
        (tree / f"lib/python{version}").mkdir(parents=True)
        (tree / f"lib/python{version}/os.py").touch()
        make_package(channel / SUBDIR, "python_abi", version, f"0_{tag}")
        depends = [f"python_abi {version}.* *_{tag}"]
        make_package(channel / SUBDIR, "python", f"{version}.1", "0", tree, depends=depends)
    index(channel)
    return channel


@pytest.fixture(scope="module")
def locks(channel: Path) -> Path:
    """The locks of the file, made once."""
    file = channel.parent / "torchyard.toml"
    file.write_text(FILE.replace("./channel", f"./{channel.name}"), encoding="utf-8")
    lock_environments(str(file))
    return channel.parent / "torchyard.conda"


@pytest.fixture
def file(tmp_path: Path, channel: Path, locks: Path) -> Path:
    (tmp_path / "channel").symlink_to(channel)
    file = tmp_path / "torchyard.toml"
    file.write_text(FILE, encoding="utf-8")
    for path in locks.rglob("*.lock"):
        text = path.read_text("utf-8").replace(f"./{channel.name}", "./channel")
        copied = lock_of(file, path.stem)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_text(text, encoding="utf-8")
    return file


def lock_of(file: Path, name: str) -> Path:
    return file.parent / f"torchyard.conda/linux-x86_64/{name}.lock"


def spec_of(file: Path, stage: Stage, python: str = "") -> JobSpec:
    plan = make_plan(load_config(str(file)))
    jobs = (job for job in plan.jobs if job.stage is stage and python in job.path)
    return make_job_spec(plan, next(jobs))


def test_each_python_has_a_lock_of_both_environments(file: Path) -> None:
    found = {name: conda_packages(lock_of(file, name).read_text("utf-8")) for name in NAMES}
    for name, python in (("core", "3.12.1"), ("cp311", "3.11.1"), ("cp312", "3.12.1")):
        assert found[name][BUILD] == dict.fromkeys(("bash", "coreutils", "sysroot_linux-64"), "1.0")
        assert found[name][HOST]["python"] == python
        assert found[name][HOST]["library"] == "1.0"


def test_a_lock_is_kept_until_the_file_asks_for_something_else(
    torchyard: Command, file: Path
) -> None:
    before = lock_of(file, "cp311").stat().st_mtime_ns
    torchyard("lock", "-f", file)
    assert lock_of(file, "cp311").stat().st_mtime_ns == before
    file.write_text(FILE.replace('host = ["library"]', "host = []"), encoding="utf-8")
    refused = torchyard("plan", "-f", file)
    assert "core are not locked as [toolchain] asks for them" in refused.err
    assert "`torchyard lock`" in refused.err
    torchyard("lock", "-f", file)
    assert "library" not in lock_of(file, "cp311").read_text("utf-8")
    assert torchyard("plan", "-f", file).code == 0


def test_what_no_package_fulfils_is_named(torchyard: Command, file: Path) -> None:
    file.write_text(FILE.replace('"library"', '"library >=2"'), encoding="utf-8")
    said = torchyard("lock", "-f", file)
    assert said.code != 0
    assert "no set of packages fulfils `conda` of [toolchain] for cp312, in host" in said.err
    assert "library >=2" not in lock_of(file, "core").read_text("utf-8")


def test_explain_says_what_the_environments_are(torchyard: Command, file: Path) -> None:
    said = torchyard("explain", "core:torch-2.14.0/linux-x86_64/cpu-openblas", "-f", file).out
    assert "bash=1.0 coreutils=1.0 sysroot_linux-64=1.0 (" in said
    assert "library=1.0 python=3.12.1 python_abi=3.12 (" in said


def test_a_lock_is_in_the_fingerprints_of_those_that_it_is_for(file: Path) -> None:
    jobs = ((Stage.CORE, ""), (Stage.BINDINGS, "cp311"), (Stage.BINDINGS, "cp312"))
    before = [spec_of(file, *job).task.fingerprint for job in jobs]
    text = lock_of(file, "cp311").read_text("utf-8")
    lock_of(file, "cp311").write_text(f"{text}# changed\n", encoding="utf-8")
    after = [spec_of(file, *job).task.fingerprint for job in jobs]
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True]


def test_the_root_has_the_environments_and_links_into_them(file: Path, tmp_path: Path) -> None:
    conditions = Conditions(work=tmp_path / "work", file=str(file))
    spec = spec_of(file, Stage.BINDINGS, "cp311")
    root = with_found_root(conditions, spec, "bwrap").sandbox.root
    assert root is not None
    found = Path(root)
    assert sorted(path.name for path in parts_of_root(root)) == SHOWN
    assert (found / "lib64").readlink() == Path(f"/opt/conda/build/{SYSROOT}/lib64")
    assert (found / "usr/bin/sh").readlink() == Path("/opt/conda/build/bin/bash")
    assert (found / "opt/python/cp311-cp311").readlink() == Path("/opt/conda/host")
    library = found / "opt/conda/host/lib/liblibrary.so"
    assert (library.read_text("utf-8"), library.stat().st_nlink) == ("lib/liblibrary.so", 2)
    with pytest.raises(HostError, match="in a sandbox of bubblewrap"):
        with_found_root(conditions, spec, "view")


def test_a_lock_names_no_place_outside_of_its_root(file: Path, tmp_path: Path) -> None:
    lock, outside = lock_of(file, "core").read_text("utf-8"), tmp_path / "outside"
    assert "\n  host:\n" in lock
    with pytest.raises(HostError):
        find_conda_root(lock.replace("\n  host:\n", f'\n  "{outside}":\n'), tmp_path)
    assert not outside.exists()


@pytest.mark.parametrize("only", ["", "file:"])
def test_packages_write_nothing_outside_of_their_root(
    file: Path, tmp_path: Path, only: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    read, written = tmp_path.parent / f"{tmp_path.name}-file", work / f"{tmp_path.name}-file"
    read.touch()
    up = "../" * len(Path("roots", "this", "opt", "conda", "build").parts)
    package = pack_by_hand(tmp_path / "hostile-1.0-0.tar.bz2", f"{up}{read.name}")
    entry = f"- conda: {package.as_uri()}\n"
    lock = lock_of(file, "core").read_text("utf-8")
    lock = lock.replace("      linux-64:\n", f"      linux-64:\n      {entry}", 1)
    with pytest.raises(HostError):
        find_conda_root(f"{lock}{entry}  subdir: linux-64\n", work, only)
    assert not written.exists()


def pack_by_hand(package: Path, path: str) -> Path:
    """Pack nothing, with a list of files that no tool would write."""
    name, version, build = package.name.removesuffix(".tar.bz2").split("-")
    index = {"name": name, "version": version, "build": build, "build_number": 0, "depends": []}
    paths = {"paths_version": 1, "paths": [{"_path": path, "path_type": "hardlink"}]}
    with tarfile.open(package, "w:bz2") as archive:
        for title, value in {"index": {**index, "subdir": SUBDIR}, "paths": paths}.items():
            text, member = json.dumps(value).encode(), tarfile.TarInfo(f"info/{title}.json")
            member.size = len(text)
            archive.addfile(member, BytesIO(text))
    return package


def test_programs_of_a_channel_reach_no_network_settings_and_caches(
    file: Path, tmp_path: Path
) -> None:
    strict = Conditions(work=tmp_path, file=str(file), demanded="bwrap")
    spec = spec_of(file, Stage.BINDINGS, "cp311")
    assert choose_sandbox(spec, strict, print) == "bwrap"
    assert not fetches_wheels(spec)
    file.write_text(FILE.replace("requires = []", 'requires = ["a==1"]'), encoding="utf-8")
    spec = spec_of(file, Stage.BINDINGS, "cp311")
    assert fetches_wheels(spec)
    with pytest.raises(HostError, match="requires wheels in conda environments"):
        choose_sandbox(spec, strict, print)


def test_tests_of_packages_run_on_the_machine(file: Path, tmp_path: Path) -> None:
    conditions = Conditions(work=tmp_path / "work", file=str(file))
    for stage in (Stage.SOURCE, Stage.CHECK, Stage.SMOKE):
        assert with_found_root(conditions, spec_of(file, stage), "bwrap") == conditions


def test_a_machine_with_its_own_sandbox_fetches_only_named_channels(
    file: Path, channel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packages are fetched outside of the sandbox, and a spec could name any address."""
    conditions = Conditions(work=tmp_path / "work", file=str(file), demanded="bwrap")
    spec = spec_of(file, Stage.CORE)
    with pytest.raises(HostError, match=r"from https://conda.anaconda.org/ only, and not file://"):
        with_found_root(conditions, spec, "bwrap")
    monkeypatch.setenv("CONDA_CHANNEL_ALIAS", channel.parent.resolve().as_uri())
    assert with_found_root(conditions, spec, "bwrap").sandbox.root


def test_an_environment_without_a_system_is_refused(
    torchyard: Command, file: Path, tmp_path: Path
) -> None:
    text = FILE.replace('"bash", "coreutils", "sysroot_linux-64"', '"coreutils"')
    file.write_text(text, encoding="utf-8")
    torchyard("lock", "-f", file)
    with pytest.raises(HostError, match="which has no sysroot, bash"):
        find_conda_root(lock_of(file, "core").read_text("utf-8"), tmp_path)
    assert not list((tmp_path / "roots").glob("conda-*[!k]"))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('["conda"]', '["conda", "wheel"]', "`wheel` packages can't contain what conda's"),
        ('["cpu"]', '["cu130"]', "conda environments can't build for cu130 yet"),
        (
            "[toolchain.conda]",
            '[toolchain]\nroot = "root"\n[toolchain.conda]',
            "have no other root",
        ),
        ("[build]", '[sandbox]\nkind = "view"\n[build]', "in conda environments need bubblewrap"),
        (
            "[toolchain.conda]",
            '[toolchain]\ncache = "cache"\n[toolchain.conda]',
            "in conda environments can't reach a compile cache",
        ),
    ],
)
def test_what_conda_environments_can_not_do_is_refused(old: str, new: str, what: str) -> None:
    assert config_of(FILE).sandbox.kind == "bwrap"
    with pytest.raises(ConfigError, match=what):
        config_of(FILE.replace(old, new))


ASKED = "# build: gxx_linux-64 12.*, sysroot_linux-64\n# host: openblas, python, zlib, headers\n"


def install(top: Path, prefix: str, name: str, *files: str, **exports: list[str]) -> None:
    """Write what an installed package leaves, as far as it is read."""
    folder = top / prefix
    for place, value in (
        (
            folder / f"conda-meta/{name}-2.1-0.json",
            {"name": name, "version": "2.1", "files": files},
        ),
        (folder / f"run_exports/{name}.json", exports),
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(msgspec.json.encode(value))


@pytest.fixture
def environments(tmp_path: Path) -> Environments:
    strong = ["libgcc >=12", "libstdcxx >=12"]
    install(tmp_path, BUILD, "gxx_linux-64", strong=strong, strong_constrains=["oldgcc <1"])
    install(
        tmp_path, BUILD, "sysroot_linux-64", f"{SYSROOT}/lib64/libc.so.6", strong=["__glibc >=2"]
    )
    install(tmp_path, BUILD, "libstdcxx", "lib/libstdc++.so.6")
    install(tmp_path, BUILD, "libgcc", "lib/libgcc_s.so.1")
    install(tmp_path, HOST, "libgcc", "lib/libgcc_s.so.1")
    install(tmp_path, HOST, "openblas", weak=["libopenblas >=0.3.34,<1.0a0"])
    install(tmp_path, HOST, "libopenblas", "lib/libopenblas.so.0", weak=["libopenblas >=0.3.34"])
    install(tmp_path, HOST, "libgomp", "lib/libgomp.so.1", strong=["_openmp_mutex >=4.5"])
    install(tmp_path, HOST, "zlib", weak=["libzlib >=1.2.13,<2.0a0"])
    install(tmp_path, HOST, "libzlib", "lib/libz.so.1", weak=["libzlib >=1.2.13,<2.0a0"])
    install(tmp_path, HOST, "headers", weak=["runtime >=3"], weak_constrains=["other <0"])
    install(tmp_path, HOST, "python", weak=["python_abi 3.12.* *_cp312"])
    install(tmp_path, HOST, "plain", "lib/libplain.so.3")
    return survey_environments(ASKED, tmp_path)


def test_no_record_of_a_package_leads_out_of_its_environment(tmp_path: Path) -> None:
    """Packages can have any file, also a record: what it names is not written elsewhere."""
    package, prefix = tmp_path / "package", tmp_path / "prefix"
    (package / "info").mkdir(parents=True)
    (package / "info/run_exports.json").write_text('{"weak": ["own >=1"]}', encoding="utf-8")
    (prefix / "conda-meta").mkdir(parents=True)
    for name in ("own", "../../stray"):
        record = {"name": name, "version": "1", "link": {"source": str(package)}}
        file = prefix / f"conda-meta/{name.rpartition('/')[2]}-1-0.json"
        file.write_bytes(msgspec.json.encode(record))
    keep_run_exports(prefix)
    assert [path.name for path in (prefix / "run_exports").iterdir()] == ["own.json"]
    assert not list(tmp_path.rglob("stray.json"))
    (found,) = installed_packages(prefix)
    assert found.exports.weak == ("own >=1",)


def test_what_is_linked_is_required_as_run_exports_say(environments: Environments) -> None:
    """Also of the build's runtimes, and what has no library; nothing that is not linked."""
    needed = ["libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libopenblas.so.0"]
    linked = environments.trace(needed)
    wanted = ("libgcc >=12", "libopenblas >=0.3.34,<1.0a0", "libstdcxx >=12", "runtime >=3")
    assert tuple(sorted(linked.depends)) == wanted
    assert linked.constrains == ("oldgcc <1", "other <0")
    assert linked.notes == (
        "`libzlib >=1.2.13,<2.0a0` is left out: nothing is linked with libzlib",
    )


def test_what_is_linked_by_chance_is_required_and_noted(environments: Environments) -> None:
    linked = environments.trace(["libgomp.so.1", "libplain.so.3", "libz.so.1"])
    assert {"_openmp_mutex >=4.5", "plain >=2.1", "libzlib >=1.2.13,<2.0a0"} <= {*linked.depends}
    assert "`libplain.so.3` is linked, and `host` does not ask for plain" in linked.notes
    assert not any("libz.so.1" in note for note in linked.notes)


def test_a_library_of_no_package_is_refused(environments: Environments) -> None:
    with pytest.raises(BuildError, match=r"`libother.so.1` is linked, and in no package"):
        environments.trace(["libother.so.1"])


def test_packages_require_what_was_traced(environments: Environments) -> None:
    """The tables of sonames and symbol versions are for packages of other toolchains."""
    build = CondaBuild(
        name="demo",
        version="1.2.0",
        compute="cpu",
        blas="openblas",
        subdir=SUBDIR,
        build_hash="ccccccc",
        core_hash="ccccccc",
        channel_libraries=True,
        needed=frozenset(["libopenblas.so.0"]),
        linked=environments.trace(["libopenblas.so.0"]),
    )
    made = describe(CondaKind.LIBRARIES, build)
    assert [depend for depend in made.depends if not depend.startswith("__")] == [
        "libopenblas >=0.3.34,<1.0a0",
        "runtime >=3",
    ]
    assert {"oldgcc <1", "other <0"} <= {*made.constrains}
