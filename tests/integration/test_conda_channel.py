"""Our conda channels, as py-rattler reads them: from a web server, with shards and without."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from rattler_build import ArchiveType
from tests.support.channels import LATER
from tests.support.conda import SUBDIR, SYSTEM, make_package, publish
from tests.support.services import Nginx

from torchyard.errors import HostError
from torchyard.index.entry import State
from torchyard.publish.channel.channel import Channel
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
    return solve([f"{nginx.url}/conda"], [spec], prefix, cache, SYSTEM, exact=True)


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
