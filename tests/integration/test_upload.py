"""Large packages into a bucket: in parts, and only the bytes that were read before."""

import zipfile
from collections import Counter
from pathlib import Path

import pytest
from tests.faults import FaultyProxy
from tests.made_wheel import make_wheel
from tests.services import Place

from torchyard.errors import PublishError
from torchyard.publish.shelves import key_of, parse_part
from torchyard.publish.staged import Package, read_staged
from torchyard.publish.upload import upload
from torchyard.store.objects import Objects

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
