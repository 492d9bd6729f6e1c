"""Corrections of a conda channel: what solvers choose before and after, as conda's own indexer."""

import asyncio
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from rattler.index import index_fs
from tests.support.conda import SUBDIR, make_package, publish
from tests.support.made_wheel import make_wheel
from tests.support.publishing import torchyard

from torchyard.publish.channel.channel import Channel
from torchyard.smoke.conda import solve

pytestmark = pytest.mark.integration

SYSTEM = {"__glibc": "2.28", "__unix": "0", "__linux": "5"}
GPU = SYSTEM | {"__cuda": "12.4"}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Make a program in two versions for two systems, and libraries that it needs."""
    out = tmp_path_factory.mktemp("packages")
    base = [make_package(out, "base", version, "0") for version in ("1.0", "2.0")]
    return [
        *base,
        make_package(out, "extra", "1.0", "0"),
        make_package(out, "app", "1.0", "cpu_0", depends=["base"]),
        make_package(out, "app", "2.0", "cpu_0", depends=["base >=2"]),
        make_package(out, "app", "2.0", "cuda_1", depends=["base >=2", "__cuda"], number=1),
        make_package(out, "user", "1.0", "0", depends=["app ==2.0 cpu_0"]),
    ]


@pytest.fixture
def channel(tmp_path: Path, packages: list[Path]) -> Path:
    folder = tmp_path / "channel"
    channel = Channel.at(str(folder), make=True)
    publish(channel, packages)
    return folder


def chosen(
    channel: Path, spec: str, cache: Path, system: Mapping[str, str] = SYSTEM
) -> dict[str, str]:
    found = solve([(channel / "conda").as_uri()], [spec], None, cache, system, exact=True)
    return {name: " ".join(package) for name, package in found.items()}


def patch(channel: Path, *words: str, status: int = 0) -> str:
    done = torchyard("channel", "patch", channel, *words)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


CHANGES = {
    "an upper bound": (["app==1.0", "--depends", "base <2"], "app ==1.0", SYSTEM, "base"),
    "a missing library": (["app==1.0", "--depends", "extra"], "app ==1.0", SYSTEM, "extra"),
    "a wrong library": (["app==2.0", "--drop", "base"], "app", SYSTEM, "base"),
    "a bare __cuda": (
        ["app==2.0", "--only", "*cuda*", "--depends", "__cuda >=13.0"],
        "app",
        GPU,
        "app",
    ),
    "a driver of everywhere": (["app==2.0", "--depends", "__cuda >=13.0"], "app", SYSTEM, "app"),
    "a constraint": (["app", "--constrains", "base ==1.0"], "app", SYSTEM, "app"),
    "a glibc": (["app==2.0", "--depends", "__glibc >=2.34"], "app", SYSTEM, "app"),
    "a lower bound": (["app==1.0", "--depends", "base >=2"], "app ==1.0", SYSTEM, None),
    "an exact library": (["app==2.0", "--depends", "base ==2.0"], "app", SYSTEM, None),
    "a licence": (["app", "--license", "MIT"], "app", SYSTEM, None),
    "a new name": (["extra", "--depends", "base"], "extra", SYSTEM, "base"),
    "something yanked": (["base==2.0", "--depends", "none-such"], "app", SYSTEM, "app"),
}
"""What is corrected, what is solved for, where, and whose answer changes."""


QUICK = ("an upper bound", "a bare __cuda")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CHANGES],
)
def test_solvers_answer_otherwise_after_a_correction_and_as_before_without(
    channel: Path, tmp_path: Path, name: str
) -> None:
    words, spec, system, differing = CHANGES[name]
    pages = {path: path.read_bytes() for path in (channel / "conda").rglob("*.conda")}
    before = chosen(channel, spec, tmp_path / "c1", system)
    assert " corrected\n" in patch(channel, *words, "--reason", "wrong")
    after = chosen(channel, spec, tmp_path / "c2", system)
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert (differing in changed) if differing else not changed
    assert {path: path.read_bytes() for path in pages} == pages
    patch(channel, words[0], "--undo", "--reason", "it was right")
    assert chosen(channel, spec, tmp_path / "c3", system) == before
    originals = json.loads((channel / f"conda/{SUBDIR}/repodata_from_packages.json").read_bytes())
    now = json.loads((channel / f"conda/{SUBDIR}/repodata.json").read_bytes())
    assert now["packages.conda"] == originals["packages.conda"]


def test_a_rollback_takes_a_correction_back(channel: Path, tmp_path: Path) -> None:
    before = chosen(channel, "app ==1.0", tmp_path / "c1")
    patch(channel, "app==1.0", "--depends", "base <2", "--reason", "base 2 has another ABI")
    log = torchyard("channel", "log", channel).stdout
    assert "correct app==1.0: base 2 has another ABI" in " ".join(log.split())
    done = torchyard("channel", "rollback", channel, "--last")
    assert "corrected" in done.stdout, done.stderr
    assert chosen(channel, "app ==1.0", tmp_path / "c2") == before


def test_a_dry_run_shows_what_solvers_would_choose(channel: Path) -> None:
    words = ("app==1.0", "--depends", "base <2", "--solve", "app ==1.0", "--dry-run")
    before = (channel / "channel.json").read_bytes()
    shown = patch(channel, *words)
    assert [line.split() for line in shown.splitlines() if line.startswith("base")] == [
        ["base", "2.0", "0", "1.0", "0"]
    ]
    assert "1 file would be corrected" in shown
    assert (channel / "channel.json").read_bytes() == before
    report = json.loads(patch(channel, *words, "--json"))
    (solved,) = report["solved"]
    assert tuple(solved[when]["packages"]["base"] for when in ("before", "after")) == (
        "2.0 0",
        "1.0 0",
    )
    (row,) = report["files"]
    assert (row["removed"], row["added"]) == (["base"], ["base <2"])


def test_an_answer_that_is_gone_is_said(channel: Path) -> None:
    words = ("app", "--depends", "none-such", "--solve", "app", "--dry-run")
    shown = " ".join(patch(channel, *words).split())
    assert "after: no set of packages fulfils app" in shown


def test_the_corrections_of_a_package_of_patches_are_those_of_conda_s_indexer(
    channel: Path, packages: list[Path], tmp_path: Path
) -> None:
    told = {
        "patch_instructions_version": 1,
        "packages": {},
        "packages.conda": {
            "app-1.0-cpu_0.conda": {"depends": ["base <2"], "constrains": ["extra >=1"]},
            "app-2.0-cpu_0.conda": {"license": "MIT", "license_family": "MIT"},
            "user-1.0-0.conda": {"depends": []},
            "not-here-1.0-0.conda": {"depends": ["x"]},
        },
        "remove": [],
        "revoke": [],
    }
    tree = tmp_path / "tree"
    (tree / SUBDIR).mkdir(parents=True)
    (tree / SUBDIR / "patch_instructions.json").write_text(json.dumps(told), encoding="utf-8")
    other = tmp_path / "other"
    (other / SUBDIR).mkdir(parents=True)
    (other / "noarch").mkdir()
    for package in packages:
        shutil.copy(package, other / SUBDIR)
    shutil.move(make_package(tmp_path, "patches", "1.0", "0", tree), other / "noarch")
    asyncio.run(index_fs(other, repodata_patch="patches-1.0-0.conda", write_shards=False))
    patch(channel, "--from", str(tree), "--reason", "as in conda-forge")
    theirs = json.loads((other / SUBDIR / "repodata.json").read_bytes())["packages.conda"]
    ours = json.loads((channel / f"conda/{SUBDIR}/repodata.json").read_bytes())["packages.conda"]
    for record in theirs.values():
        record.pop("indexed_timestamp", None)
    assert ours == theirs


def test_the_check_of_a_channel_knows_corrections(channel: Path) -> None:
    patch(channel, "app==1.0", "--depends", "base <2", "--reason", "wrong")
    address = (channel / "conda").as_uri()
    done = torchyard("channel", "check", address, "--deep")
    assert done.returncode == 0, done.stdout + done.stderr
    (channel / f"conda/{SUBDIR}/repodata_from_packages.json").unlink()
    assert "its record says depends" in torchyard("channel", "check", address, "--deep").stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["app", "--depends", "base <2"], "a reason is missing"),
        (["app", "--reason", "x"], "nothing to correct"),
        (["--depends", "base", "--reason", "x"], "nothing to correct"),
        (["app", "--undo", "--drop", "base", "--reason", "x"], "too much at once"),
        (["app", "--from", ".", "--reason", "x"], "too much at once"),
        (["app", "--drop", "base", "--virtual", "cuda", "--reason", "x"], "not a virtual package"),
    ],
)
def test_what_can_not_be_done_is_refused(channel: Path, words: list[str], why: str) -> None:
    assert why in patch(channel, *words, status=2)


def test_wheels_can_not_be_corrected(channel: Path, tmp_path: Path) -> None:
    make_wheel(tmp_path / "wheels", "tool", "1.0")
    torchyard("publish", tmp_path / "wheels", "--to", channel)
    shown = patch(channel, "tool", "--undo", "--reason", "x", status=5)
    assert "has no conda packages of `tool`" in shown


def test_packages_that_are_not_there_can_not_be_corrected(channel: Path) -> None:
    assert "none-such" in patch(channel, "none-such", "--undo", "--reason", "x", status=5)
