"""What one new file costs: the same few requests, however large the channel is."""

from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.faults import FaultyProxy
from tests.support.services import Place

from torchyard.index.entry import Entry
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason, Edit
from torchyard.publish.channel.layout import parse_part
from torchyard.publish.publish import add, publish
from torchyard.publish.staged import Package

pytestmark = pytest.mark.integration

REASON = ChangeReason("test", "2026-11-15T14:20:00Z")
VARIANTS = ("cpu", "cu126", "cu130", "rocm7.2")


def wheel(project: str, variant: str, day: int) -> Entry:
    version = f"2.14.0.dev{day}+{variant}"
    file = f"{project}-{version}-cp312-cp312-manylinux_2_28_x86_64.whl"
    digest = sha256(file.encode()).hexdigest()
    return Entry(
        file=file,
        version=version,
        variant=variant,
        sha256=digest,
        size=len(file),
        uploaded=REASON.at,
        metadata=digest,
    )


def adding(part: str, entries: list[Entry]) -> Edit:
    return lambda state: add(parse_part(part), state, entries)


def package(folder: Path, project: str, entry: Entry) -> Package:
    path = folder / entry.file
    path.write_text(entry.file, encoding="utf-8")
    return Package(
        path=path,
        part=f"simple/{project}",
        entry=entry,
        name=project,
        requires=(),
        findings=(),
        metadata=b"Metadata-Version: 2.4",
    )


@pytest.fixture
def url(s3_place: Place, s3_proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket, reached through the proxy."""
    place = s3_place.behind(s3_proxy.endpoint)
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    return place.url


def fill(url: str, projects: int, days: int) -> None:
    """Publish some versions of projects in all variants, as far as pages can tell."""
    made = {}
    for project in (f"project{number}" for number in range(projects)):
        entries = [wheel(project, variant, day) for variant in VARIANTS for day in range(days)]
        made[f"simple/{project}"] = adding(f"simple/{project}", entries)
    Channel.at(url, make=True).commit(made, REASON)


@pytest.mark.parametrize(("projects", "days"), [(1, 1), (10, 3), (60, 20)])
def test_a_file_costs_ten_requests(
    projects: int, days: int, url: str, s3_proxy: FaultyProxy, tmp_path: Path
) -> None:
    fill(url, projects, days)
    s3_proxy.requests.clear()

    channel = Channel.at(url, make=True)
    new = package(tmp_path, "project0", wheel("project0", "cu130", days))
    publish(channel, channel.head(), [new], REASON)

    asked = [(request.method, _kind(request.path)) for request in s3_proxy.requests]
    assert Counter(asked) == {
        ("PUT", "packages"): 2,
        ("GET", "channel.json"): 1,
        ("GET", "states"): 1,
        ("PUT", "states"): 1,
        ("PUT", "channel.json"): 1,
        ("PUT", "cu130"): 2,
        ("PUT", "simple"): 2,
    }
    page = channel.objects.read("cu130/project0/index.html")
    assert page is not None
    assert page.count(b"<a href=") == days + 1


@pytest.mark.parametrize(
    ("projects", "files", "requests"),
    [(1, 4, {"GET": 2, "PUT": 20}), (3, 24, {"GET": 7, "PUT": 82})],
)
def test_files_that_are_published_together(
    *,
    projects: int,
    files: int,
    requests: dict[str, int],
    url: str,
    s3_proxy: FaultyProxy,
    tmp_path: Path,
) -> None:
    """As `docs/concepts/scale.md` tells."""
    fill(url, projects, 1)
    s3_proxy.requests.clear()
    new = [
        package(tmp_path, project, wheel(project, variant, 1 + day))
        for project in (f"project{number}" for number in range(projects))
        for variant in VARIANTS
        for day in range(files // projects // len(VARIANTS))
    ]
    assert len(new) == files
    channel = Channel.at(url, make=True)
    publish(channel, channel.head(), new, REASON)
    assert s3_proxy.counts == requests


def _kind(path: str) -> str:
    """The first folder of an object, below the bucket and the test's prefix."""
    return path.partition("?")[0].split("/")[3]
