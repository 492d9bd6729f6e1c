"""Our conda channels, as py-rattler reads them: from a web server, with shards and without."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest
from packaging.requirements import Requirement
from rattler_build import ArchiveType
from tests.support.channels import LATER
from tests.support.conda import (
    SUBDIR,
    SYSTEM,
    UnsolvableError,
    make_package,
    publish,
    solve_and_install,
)
from tests.support.services import Nginx

from torchyard.config.tables import load_tables
from torchyard.errors import HostError
from torchyard.index.entry import State
from torchyard.package.conda.metadata import CondaBuild, CondaKind, describe
from torchyard.package.conda.name import SUFFIX
from torchyard.publish.channel.channel import Channel
from torchyard.publish.ops.yank import yank
from torchyard.publish.resolve.compatibility import MachineFacts, Reason
from torchyard.publish.resolve.resolve import Resolution, find_package
from torchyard.publish.select import parse_selection
from torchyard.smoke.conda import index_channel, solve

pytestmark = pytest.mark.integration

PART = f"conda/{SUBDIR}"
SHARD = re.compile(rf"/conda/{SUBDIR}/shards/[0-9a-f]{{64}}\.msgpack\.zst")
NO_SHARDS = "location ~ repodata_shards { return 404; }"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Make a program that needs a library, in two versions, and packages that nobody needs."""
    out = tmp_path_factory.mktemp("packages")
    tree = out / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin/app").write_text("#!/bin/sh\n", encoding="utf-8")
    return [
        make_package(out, "lib-base", "1.0", "h1_0"),
        make_package(out, "lib-base", "2.0", "h1_0", archive=ArchiveType.TarBz2),
        make_package(out, "app", "1.0", "h1_0", tree, depends=["lib-base >=1"]),
        *(make_package(out, f"other{number}", "1.0", "0") for number in range(3)),
    ]


@pytest.fixture
def channel(tmp_path: Path, packages: list[Path]) -> Channel:
    channel = Channel.at(str(tmp_path / "channel"), make=True)
    publish(channel, packages)
    return channel


@pytest.fixture(params=["", NO_SHARDS], ids=["shards", "whole"])
def served(request: pytest.FixtureRequest, channel: Channel, tmp_path: Path) -> Iterator[Nginx]:
    """Serve a channel, with its shards or as if it had none; clients ask each time what is new."""
    root = channel.objects.folder
    server = (
        f"server {{ listen 80; root {root}; add_header Cache-Control no-cache; {request.param} }}"
    )
    with Nginx(tmp_path / "nginx", server) as nginx:
        yield nginx


def choose(nginx: Nginx, spec: str, prefix: Path | None, cache: Path) -> dict[str, str]:
    found = solve([f"{nginx.url}/conda"], [spec], prefix, cache, SYSTEM, exact=True)
    return {name: chosen.build for name, chosen in found.items()}


def test_packages_are_solved_for_and_installed(
    served: Nginx, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    builds = choose(served, "app", tmp_path / "prefix", tmp_path / "cache")
    assert set(builds) == {"app", "lib-base"}
    assert (tmp_path / "prefix/bin/app").exists()
    assert (tmp_path / "prefix/conda-meta/lib-base-2.0-h1_0.json").exists()
    read = {one.path for one in served.asked() if one.status == 200}
    shards = {path for path in read if SHARD.fullmatch(path)}
    if "whole" in request.node.name:
        assert f"/{PART}/repodata.json.zst" in read
        assert not shards
    else:
        assert f"/{PART}/repodata_shards.msgpack.zst" in read
        assert len(shards) == 2, "one for each name that is needed, and none for others"
        assert not any("repodata.json" in path for path in read)


def test_a_yanked_version_is_not_chosen(channel: Channel, served: Nginx, tmp_path: Path) -> None:
    def yank(state: State) -> State:
        entries = (
            msgspec.structs.replace(entry, yanked="bad") if entry.version == "2.0" else entry
            for entry in state.entries
        )
        return msgspec.structs.replace(state, entries=tuple(entries))

    channel.commit({PART: yank}, LATER)
    assert choose(served, "lib-base", None, tmp_path / "cache") == {"lib-base": "h1_0"}
    with pytest.raises(HostError, match="lib-base"):
        choose(served, "lib-base >=2", None, tmp_path / "cache")


def test_a_new_package_is_found_by_a_client_that_knows_the_old_ones(
    channel: Channel, served: Nginx, tmp_path: Path
) -> None:
    with pytest.raises(HostError, match="lib-base"):
        choose(served, "lib-base >=3", None, tmp_path / "cache")
    publish(channel, [make_package(tmp_path, "lib-base", "3.0", "h1_0")])
    assert choose(served, "lib-base >=3", None, tmp_path / "cache")


def test_records_are_those_of_another_indexer(
    channel: Channel, packages: list[Path], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / SUBDIR).mkdir(parents=True)
    for package in packages:
        shutil.copy(package, other / SUBDIR)
    index_channel(other)
    theirs = json.loads((other / SUBDIR / "repodata.json").read_bytes())
    ours = json.loads(channel.objects.read(f"{PART}/repodata.json") or b"")
    for sort in ("packages", "packages.conda"):
        assert ours[sort]
        expected = {
            file: {key: value for key, value in record.items() if key != "indexed_timestamp"}
            for file, record in theirs[sort].items()
        }
        assert ours[sort] == expected


def test_packages_that_need_a_yanked_one_exactly_follow_it(tmp_path: Path) -> None:
    out = tmp_path / "packages"
    out.mkdir()
    made = [make_package(out, "libdemo", "1.0", f"h{core}_0") for core in "12"]
    for core in "12":
        libraries = f"libdemo ==1.0 h{core}_0"
        made.append(make_package(out, "demo", "1.0", f"py312_h{core}_0", depends=[libraries]))
    made.append(make_package(out, "demo-cpu", "1.0", "h1_0", depends=["demo ==1.0 py312_h1*"]))
    made.append(make_package(out, "demo-any", "1.0", "h1_0", depends=["demo ==1.0 py312_*"]))
    channel = Channel.at(str(tmp_path / "channel"), make=True)
    publish(channel, made)
    before = channel.state(channel.head(), PART).entries
    one = parse_selection(["libdemo"], files=["*-h1_0.conda"])
    _, changed = yank(channel, one, "it is broken", LATER)
    assert {it.entry.file for it in changed} == {
        "libdemo-1.0-h1_0.conda",
        "demo-1.0-py312_h1_0.conda",
        "demo-cpu-1.0-h1_0.conda",
    }
    marked = {it.file: it.yanked for it in channel.state(channel.head(), PART).entries}
    assert (
        marked["demo-1.0-py312_h1_0.conda"] == "requires libdemo-1.0-h1_0.conda, which was yanked"
    )
    listed = json.loads(channel.objects.read(f"{PART}/repodata.json") or b"")
    assert {*listed["packages.conda"]} == {
        "libdemo-1.0-h2_0.conda",
        "demo-1.0-py312_h2_0.conda",
        "demo-any-1.0-h1_0.conda",
    }
    yank(channel, one, None, LATER)
    assert channel.state(channel.head(), PART).entries == before


BUILDS = [
    (compute, blas, glibc)
    for compute in ("cpu", "cu118", "cu126", "cu130", "cu132")
    for blas in ("openblas", "mkl")
    for glibc in ((2, 28), (2, 34))
]


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Channel, Path]:
    """Publish a version for all of these, described as real ones are."""
    out, copy = tmp_path_factory.mktemp("builds"), tmp_path_factory.mktemp("copy")
    made = [
        make_package(out, "python", "3.12.1", "0", depends=["python_abi 3.12.*"]),
        make_package(out, "python_abi", "3.12", "0_cp312"),
    ]
    for number, (compute, blas, glibc) in enumerate(BUILDS):
        build = CondaBuild(
            name="demo",
            version="1.0",
            compute=compute,
            blas=blas,
            subdir=SUBDIR,
            build_hash=f"{number:07x}",
            python="cp312",
            glibc=glibc,
        )
        it = describe(CondaKind.PACKAGE, build)
        made.append(
            make_package(out, it.name, it.version, it.build, depends=it.depends, number=it.number)
        )
    (copy / SUBDIR).mkdir()
    for package in made:
        shutil.copy(package, copy / SUBDIR)
    index_channel(copy)
    channel = Channel.at(str(tmp_path_factory.mktemp("channel") / "channel"), make=True)
    publish(channel, made)
    return channel, copy


@pytest.mark.parametrize("glibc", ["2.28", "2.34"])
@pytest.mark.parametrize("driver", ["", "11.8", "12.4", "12.8", "13.0", "13.2"])
def test_which_and_the_solver_choose_the_same_build(
    builds: tuple[Channel, Path], driver: str, glibc: str
) -> None:
    channel, copy = builds
    answer = which(channel, driver, glibc)
    solved = solve_and_install(copy, ["demo"], None, system_of(driver, glibc)).builds["demo"]
    assert answer.choice is not None
    assert answer.choice.file == f"demo-1.0-{solved}{SUFFIX}"
    assert solved.startswith("cuda" if driver else "cpu_mkl")


def test_which_and_the_solver_refuse_the_same_builds(builds: tuple[Channel, Path]) -> None:
    channel, copy = builds
    answer = which(channel, "12.4", "2.28")
    assert answer.choice is not None
    system, fitting = system_of("12.4", "2.28"), {answer.choice.file}
    fitting |= {it.entry.file for it in answer.others if it.misfit.reason is Reason.LESSER}
    entries = channel.state(channel.head(), PART).entries
    files = [entry.file for entry in entries if re.match(r"demo-1.0-\w+_mkl_", entry.file)]
    assert len(files) == len(BUILDS) // 2
    for file in files:
        build = file.removeprefix("demo-1.0-").removesuffix(SUFFIX)
        assert is_solvable(copy, f"demo ==1.0 {build}", system) == (file in fitting), file


def which(channel: Channel, driver: str, glibc: str) -> Resolution:
    gpu = {"cuda": driver} if driver else {}
    facts = MachineFacts(python="cp312", platform="linux-x86_64", glibc=glibc, gpu=gpu)
    return find_package(channel, Requirement("demo"), "conda", facts, load_tables())


def system_of(driver: str, glibc: str) -> dict[str, str]:
    return {**SYSTEM, "__glibc": glibc, **({"__cuda": driver} if driver else {})}


def is_solvable(copy: Path, spec: str, system: Mapping[str, str]) -> bool:
    try:
        solve_and_install(copy, [spec], None, system)
    except UnsolvableError:
        return False
    return True
