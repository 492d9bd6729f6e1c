"""What one new file costs: the same few requests, however large the channel is."""

from bisect import insort
from collections import Counter
from hashlib import sha256

import msgspec
import pytest
from tests.faults import FaultyProxy
from tests.services import Place

from torchyard.index.entry import Entry, State, order_of, package_key
from torchyard.publish.channel import Channel
from torchyard.publish.draft import Edit, Order

pytestmark = pytest.mark.integration

ORDER = Order("test", "2026-11-15T14:20:00Z")
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
        uploaded=ORDER.at,
        metadata=digest,
    )


def adding(*new: Entry) -> Edit:
    def edit(state: State) -> State:
        entries = list(state.entries)
        for entry in new:
            insort(entries, entry, key=order_of)
        return msgspec.structs.replace(state, entries=tuple(entries))

    return edit


def upload(channel: Channel, entry: Entry) -> None:
    key = package_key(entry.sha256, entry.file)
    assert channel.objects.create(key, entry.file.encode())
    assert channel.objects.create(f"{key}.metadata", b"Metadata-Version: 2.4\n")


@pytest.mark.parametrize(("projects", "days"), [(1, 1), (10, 3), (60, 20)])
def test_a_file_costs_ten_requests(
    projects: int,
    days: int,
    s3_place: Place,
    s3_proxy: FaultyProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = s3_place.behind(s3_proxy.endpoint)
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    made = {
        f"simple/project{number}": adding(
            *(wheel(f"project{number}", name, day) for name in VARIANTS for day in range(days))
        )
        for number in range(projects)
    }
    Channel.at(place.url, make=True).commit(made, ORDER)
    s3_proxy.requests.clear()

    channel = Channel.at(place.url, make=True)
    new = wheel("project0", "cu130", days)
    upload(channel, new)
    channel.commit({"simple/project0": adding(new)}, ORDER)

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


def _kind(path: str) -> str:
    """The first folder of an object, below the bucket and the test's prefix."""
    return path.partition("?")[0].split("/")[3]
