"""With a store in a bucket, a machine fetches what its jobs need once."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.faults import FaultyProxy
from tests.support.helpers import CORE, WORKS, Command, make_project
from tests.support.services import Place

from torchyard.store.local_cache import LocalCache
from torchyard.store.store import Store
from torchyard.store.trees import Writer, fetch_tree

pytestmark = pytest.mark.integration

BINDINGS = "bindings:demo-1.0/linux-x86_64/cpu-openblas/"
LARGE = WORKS.replace("cat {source}/*.txt >", "head -c 3000000 /dev/urandom >").replace(
    '"cp312"', '"cp312", "cp313"'
)


@pytest.fixture
def far(s3_place: Place, s3_proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store in a bucket, behind a proxy that counts what is read."""
    for name, value in s3_place.behind(s3_proxy.endpoint).environment.items():
        monkeypatch.setenv(name, value)
    return s3_place.url


def blobs_read(proxy: FaultyProxy) -> int:
    return sum(
        request.method == "GET" and re.search(r"blobs(/|%2F)", request.path) is not None
        for request in proxy.requests
    )


@pytest.mark.parametrize("copies", [True, False])
def test_the_core_stays_on_a_machine_that_made_or_used_it(
    torchyard: Command, tmp_path: Path, far: str, s3_proxy: FaultyProxy, copies: bool
) -> None:
    limit = 'copies = "1 GB"' if copies else ""
    file = make_project(tmp_path, f'{LARGE}\n[store]\nurl = "{far}"\n{limit}\n')

    def run(job: str, work: str) -> int:
        """How many blobs a job reads."""
        s3_proxy.requests.clear()
        done = torchyard("run", job, "-f", file, "--work", tmp_path / work)
        assert done.code == 0, done.err
        assert ("0 B of 3 MB of its inputs" in done.err) is (
            copies and job.endswith(("311", "313"))
        )
        return blobs_read(s3_proxy)

    assert run("source:demo-1.0", "here") == 0
    assert (run(CORE, "here") == 0) is copies
    assert (run(f"{BINDINGS}cp311", "here") == 0) is copies
    assert run(f"{BINDINGS}cp312", "there") == 4
    assert (run(f"{BINDINGS}cp313", "there") == 0) is copies


def test_a_build_hands_the_limit_to_its_jobs(
    torchyard: Command, tmp_path: Path, far: str, s3_proxy: FaultyProxy
) -> None:
    file = make_project(tmp_path, f'{LARGE}\n[store]\nurl = "{far}"\ncopies = "1 GB"\n')
    done = torchyard("build", "core:*", "-f", file)
    assert done.code == 0, done.err
    assert blobs_read(s3_proxy) == 0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of a few megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount") or "mount"
    words = [mount, "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("no small disk can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_copies_make_way_for_the_job_on_a_full_disk(tmp_path: Path, small: Path) -> None:
    store = Store.at(str(tmp_path / "store"))
    trees = {}
    for name, size in (("old", 1_000_000), ("new", 3_500_000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(bytes(size) + name.encode())
        trees[name] = Writer(store).add_tree(tmp_path / name)
    copies = LocalCache(small / "copies", 10**9)
    fetch_tree(store, trees["old"], small / "in", copies)
    assert fetch_tree(store, trees["old"], tmp_path / "in", copies) == 0
    (small / "in" / "file").unlink()
    fetch_tree(store, trees["new"], small / "in", copies)
    assert (small / "in" / "file").read_bytes() == (tmp_path / "new" / "file").read_bytes()
    assert not any(path.is_file() for path in (small / "copies").rglob("*"))
