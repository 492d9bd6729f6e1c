"""Large packages into a bucket: in parts, and only the bytes that were read before."""

import re
import secrets
import zipfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
import obstore
import pytest
from obstore.store import S3Store
from tests.support.channels import conda
from tests.support.faults import Fault, FaultyProxy, Request
from tests.support.made_wheel import make_wheel
from tests.support.services import Place

from torchyard.errors import PublishError
from torchyard.index.entry import Entry
from torchyard.publish.channel.layout import headers, key_of, parse_part
from torchyard.publish.staged import Package, digests_of, read_staged
from torchyard.publish.upload import upload
from torchyard.store.objects import LARGEST_COPY, NO_HEADERS, Headers, Objects

pytestmark = pytest.mark.integration

MORE = bytes(24 << 20)


@pytest.fixture
def objects(s3_place: Place, s3_proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch) -> Objects:
    """A bucket, reached through the proxy."""
    for name, value in s3_place.behind(s3_proxy.endpoint).environment.items():
        monkeypatch.setenv(name, value)
    return Objects(s3_place.url)


@pytest.fixture
def package(tmp_path: Path) -> Package:
    path = make_wheel(tmp_path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr("demo/large.bin", MORE)
    (package,) = read_staged([path], "compute", "2026-11-15T14:20:00Z")
    return package


def test_a_large_package_is_sent_in_parts(
    objects: Objects, package: Package, s3_proxy: FaultyProxy
) -> None:
    upload(objects, [package])
    methods = Counter(request.method for request in s3_proxy.requests)
    assert methods == {"HEAD": 1, "POST": 2, "PUT": 6}, "begun, five parts, ended; the sidecar"
    key = key_of(parse_part(package.part), package.entry)
    assert b"".join(objects.stream(key)) == package.path.read_bytes()
    upload(objects, [package])
    assert len(list(objects.list(""))) == 2


def test_a_large_package_that_changes_meanwhile_never_appears(
    objects: Objects, package: Package, s3_proxy: FaultyProxy
) -> None:
    with package.path.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"x")
    with pytest.raises(PublishError, match="was changed while it was being published"):
        upload(objects, [package])
    methods = [request.method for request in s3_proxy.requests]
    assert methods.count("POST") == 1, "it was begun, and never ended"
    assert methods[-1] == "DELETE", "the parts are taken back"
    assert not list(objects.list(""))


def _large_conda(folder: Path) -> Package:
    """What a channel takes for a conda package; each has the same name, and bytes of its own."""
    made = conda("large")
    path = folder / secrets.token_hex(4) / made.entry.file
    path.parent.mkdir()
    path.write_bytes(secrets.token_bytes(1 << 20) * 12)
    return Package(path, made.part, _entry_of(path, made.entry), "large", (), ())


def _entry_of(path: Path, entry: Entry) -> Entry:
    digests = digests_of(path)
    return msgspec.structs.replace(entry, sha256=digests.sha256, size=digests.size)


CONDA = "conda/linux-64/large-1.0-h1_0.conda"


def test_a_large_conda_package_is_sent_in_parts_and_then_gets_its_name(
    objects: Objects, tmp_path: Path, s3_proxy: FaultyProxy, s3_place: Place
) -> None:
    package = _large_conda(tmp_path)
    upload(objects, [package])
    assert s3_proxy.counts == {"HEAD": 1, "POST": 3, "PUT": 4}, (
        "begun, three parts, ended, named, removed"
    )
    assert max(request.size for request in s3_proxy.requests) < 6 << 20
    assert [meta.key for meta in objects.list("")] == [CONDA]
    assert b"".join(objects.stream(CONDA)) == package.path.read_bytes()
    there = obstore.get(S3Store.from_url(s3_place.url, client_options={"allow_http": True}), CONDA)
    assert dict(there.attributes) == headers("application/octet-stream", "name")
    upload(objects, [package])
    assert s3_proxy.counts["POST"] == 3, "nothing is sent twice"


def test_a_part_that_gets_lost_costs_only_itself(
    objects: Objects, tmp_path: Path, s3_proxy: FaultyProxy
) -> None:
    package = _large_conda(tmp_path)

    def plan(request: Request) -> Fault:
        is_part = re.search(r"partNumber=[23]\b", request.path)
        again = sum(one.path == request.path for one in s3_proxy.requests) > 1
        return Fault.LOSE_REQUEST if is_part and not again else Fault.NONE

    s3_proxy.plan = plan
    upload(objects, [package])
    assert s3_proxy.counts == {"HEAD": 1, "POST": 3, "PUT": 6}
    assert b"".join(objects.stream(CONDA)) == package.path.read_bytes()


@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST, Fault.CONFLICT])
def test_a_name_is_given_whatever_becomes_of_the_answer(
    objects: Objects, tmp_path: Path, s3_proxy: FaultyProxy, fault: Fault
) -> None:
    package = _large_conda(tmp_path)

    def plan(request: Request) -> Fault:
        renames = [one for one in s3_proxy.requests if one.method == "PUT" and not one.size]
        return fault if renames == [request] else Fault.NONE

    s3_proxy.plan = plan
    upload(objects, [package])
    assert [meta.key for meta in objects.list("")] == [CONDA]
    assert b"".join(objects.stream(CONDA)) == package.path.read_bytes()


class Raced(Objects):
    """Objects of which one appears while another is being sent."""

    rival = b"quicker"

    def write(
        self, key: str, data: bytes | Path | Iterable[bytes], headers: Headers = NO_HEADERS
    ) -> None:
        super().write(key, data, headers)
        self.create(CONDA, self.rival)


@pytest.mark.parametrize("place", ["directory", "bucket"])
def test_of_two_that_send_the_same_name_one_is_refused(
    tmp_path: Path, objects: Objects, place: str
) -> None:
    raced = Raced(objects.url if place == "bucket" else str(tmp_path / "channel"))
    package = _large_conda(tmp_path)
    with pytest.raises(PublishError, match=r"has another .*, with other bytes"):
        upload(raced, [package])
    assert raced.read(CONDA) == b"quicker"
    assert [meta.key for meta in raced.list("")] == [CONDA]
    raced.delete([CONDA])
    raced.rival = package.path.read_bytes()
    upload(raced, [package])
    assert [meta.key for meta in raced.list("")] == [CONDA]


def test_a_conda_package_that_no_bucket_can_rename_is_refused_at_once(
    objects: Objects, tmp_path: Path, s3_proxy: FaultyProxy
) -> None:
    package = _large_conda(tmp_path)
    with package.path.open("r+b") as file:
        file.truncate(LARGEST_COPY + 1)
    with pytest.raises(PublishError, match=r"has 5\.37 GB, which is too large for a bucket"):
        upload(objects, [package])
    assert s3_proxy.counts == {"HEAD": 1}
