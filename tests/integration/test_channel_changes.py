"""What users see of a channel after it was changed: yanked, rolled back, pruned, promoted."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.support.conda import SYSTEM, make_package
from tests.support.installers import Installer, Pip, RefusedError, Uv
from tests.support.served import SHARED, Served, names, tiny

from torchyard.errors import HostError
from torchyard.publish.channel.channel import Channel
from torchyard.smoke.conda import solve

pytestmark = pytest.mark.integration


@pytest.fixture(params=[pytest.param(Pip(), marks=pytest.mark.slow), Uv()], ids=["pip", "uv"])
def installer(request: pytest.FixtureRequest) -> Installer:
    """Install by uv, and every night by pip, which takes 30 s of a processor for these tests."""
    installer: Installer = request.param
    return installer


def test_installers_follow_what_is_done_to_a_channel(
    served: Served, installer: Installer, release: Path, tmp_path: Path
) -> None:
    """Yank, roll back, prune, delete: each is seen at once, and nothing else is."""
    served.publish(release)
    index, target = f"{served.url}/cpu/", _targets(tmp_path)

    def newest() -> str:
        return installer.install(index, "tiny", next(target))["tiny"]

    served.call("channel", "yank", served.place, "tiny==1.1", "--reason", "it is slow")
    assert newest() == "1.0+cpu"
    pinned = installer.install(index, "tiny==1.1+cpu", next(target))
    assert pinned == {"tiny": "1.1+cpu", "shared": "2.0"}
    served.call("channel", "rollback", served.place, "--last")
    assert newest() == "1.1+cpu"

    served.call("channel", "prune", served.place, "--keep", "2")  # 1.2, which can't be had, and 1.1
    with pytest.raises(RefusedError, match=r"tiny==1\.0"):
        installer.install(index, "tiny==1.0+cpu", next(target))
    assert newest() == "1.1+cpu"
    served.call("channel", "rollback", served.place, "--last")
    assert installer.install(index, "tiny==1.0+cpu", next(target))["tiny"] == "1.0+cpu"

    served.call("channel", "prune", served.place, "--keep", "2")
    deleted = [key for key in served.delete_hidden() if key.endswith(".whl")]
    assert {Path(key).name for key in deleted} == {tiny("1.0+cpu"), tiny("1.0+cu130")}
    assert [served.channel.objects.head(key) for key in deleted] == [None, None]
    assert newest() == "1.1+cpu"


def test_promoted_packages_are_the_same_bytes(
    served: Served, installer: Installer, release: Path, tmp_path: Path
) -> None:
    """From a channel of tests into one of releases, with and without the local version."""
    served.publish(release)
    target = _targets(tmp_path)
    for name, words, view, version in (
        ("kept", (), "cu130", "1.1+cu130"),
        ("dropped", ("--local", "drop", "--variant", "cpu"), "cpu", "1.1"),
    ):
        # Another channel on the same server: nginx shows what is below, too.
        to = f"{served.place}/{name}"
        served.call("channel", "promote", served.place, to, "shared", "--external", "*")
        served.call("channel", "promote", served.place, to, "tiny==1.1", *words)
        served.nginx.asked()
        found = installer.install(f"{served.url}/{name}/{view}/", "tiny", next(target))
        assert found == {"tiny": version, "shared": "2.0"}
        assert names(served.nginx.asked(), ".whl") == [SHARED, tiny(version)]
        promoted, origin = (
            {entry.version: entry for entry in channel.state(channel.head(), "simple/tiny").entries}
            for channel in (Channel.at(to), served.channel)
        )
        old, new = origin[f"1.1+{view}"], promoted[version]
        assert old.sha256 == (new.promoted or new.sha256)


def test_solvers_follow_what_is_done_to_a_channel(served: Served, tmp_path: Path) -> None:
    made = tmp_path / "made"
    for version in ("1.0", "1.1"):
        make_package(made, "tiny", version, f"build_{version[-1]}")
    served.publish(made)
    caches = _targets(tmp_path)

    def newest(place: str = "") -> str:
        # A cache of its own: what rattler fetched a moment ago, it takes for good for a minute.
        url = f"{served.url}{place}/conda"
        return solve([url], ["tiny"], None, next(caches), SYSTEM, exact=True)["tiny"].build

    assert newest() == "build_1"
    served.call("channel", "yank", served.place, "tiny==1.1", "--reason", "it is slow")
    assert newest() == "build_0"
    served.call("channel", "rollback", served.place, "--last")
    assert newest() == "build_1"
    served.call("channel", "prune", served.place, "--keep", "1")
    with pytest.raises(HostError, match="tiny"):
        solve([f"{served.url}/conda"], ["tiny==1.0"], None, next(caches), SYSTEM, exact=True)
    served.call("channel", "promote", served.place, f"{served.place}/release", "tiny==1.1")
    assert newest("/release") == "build_1"


def _targets(folder: Path) -> Iterator[Path]:
    """Directories that are not there yet."""
    return (folder / f"target-{number}" for number in count())
