"""`torchyard smoke --from`: what is published, installed as users do."""

import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.support.conda import make_package
from tests.support.helpers import Command
from tests.support.served import SHARED, Served, serve_directory, tiny
from tests.support.smoke import make_wheel

pytestmark = pytest.mark.integration

QUICK = ("--level", "import", "--environment", "clean", "--json")
Outcomes = dict[tuple[str, str], str]


def smoked(served: Served, *words: object) -> tuple[int, Outcomes]:
    """The exit code, and how installing each file by each installer ended."""
    return _smoked(served, served.place, "--url", served.url, *words)


def _smoked(served: Served, place: str, *words: object) -> tuple[int, Outcomes]:
    done = served.torchyard("smoke", "--from", place, *words, *QUICK)
    if not done.out:
        pytest.fail(done.err)
    return done.code, {
        (package["file"], run["installer"]): run["tests"][0]["outcome"]
        for package in json.loads(done.out)["packages"]
        for run in package["runs"]
    }


@pytest.mark.slow
def test_what_users_can_not_install_is_found(
    tmp_path: Path, torchyard: Command, release: Path
) -> None:
    """The newest version requires what nobody has; the one before it works."""
    with serve_directory(tmp_path, torchyard) as served:
        served.publish(release)
        code, found = smoked(served, "--variant", "cpu", "tiny>=1.1")
        assert code != 0
        assert found == {
            (tiny("1.1+cpu"), "pip"): "passed",
            (tiny("1.1+cpu"), "uv"): "passed",
            (tiny("1.2+cpu"), "pip"): "failed",
            (tiny("1.2+cpu"), "uv"): "failed",
        }
        asked = [one.path for one in served.nginx.asked()]
        assert "/cpu/tiny/" in asked
        assert not any(path.startswith("/cu130/") for path in asked)


@pytest.mark.slow
def test_only_the_newest_of_everything_unless_something_is_named(
    tmp_path: Path, torchyard: Command, release: Path
) -> None:
    with serve_directory(tmp_path, torchyard) as served:
        served.publish(release)
        served.call(
            "channel", "yank", served.place, "tiny==1.2", "--reason", "it can't be installed"
        )
        code, found = smoked(served, "--installer", "uv")
        assert (code, found) == _smoked(served, served.url, "--installer", "uv")
        assert code == 0
        files = {file for file, _ in found}
        assert files == {tiny("1.1+cpu"), tiny("1.1+cu130"), SHARED}


@pytest.mark.slow
def test_conda_packages_zips_and_what_an_index_does_not_have(
    tmp_path: Path, torchyard: Command
) -> None:
    packages, elsewhere = tmp_path / "packages", tmp_path / "elsewhere"
    packages.mkdir()
    (elsewhere / "shared").mkdir(parents=True)
    make_package(packages, "solo", "1.0", "0")
    with ZipFile(packages / "libtorch-shared-with-deps-1.0+cpu.zip", "w") as archive:
        archive.writestr("libtorch/build-version", "1.0+cpu\n")
        archive.writestr("libtorch/include/torch.h", "\n")
    make_wheel(packages, requires="shared", dist="tiny", version="1.0+cpu")
    wheel = make_wheel(elsewhere / "shared", dist="shared", version="2.0")
    (elsewhere / "shared" / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    with serve_directory(tmp_path, torchyard) as served:
        served.publish(packages, "--external", "shared")
        code, found = smoked(served, "--extra-index-url", elsewhere.as_uri())
        assert code == 0, found
        assert {installer for _, installer in found} == {"pip", "uv", "conda", "unzip"}


def test_nothing_to_try(torchyard: Command) -> None:
    done = torchyard("smoke")
    assert done.code == 2
    assert "name packages, or a channel by --from" in done.err


def test_what_would_have_no_effect_is_refused(tmp_path: Path, torchyard: Command) -> None:
    wheel = make_wheel(tmp_path)
    for given in ("--url", "--extra-index-url", "--variant", "--only"):
        done = torchyard("smoke", wheel, given, "https://example.org")
        assert done.code == 2
        assert f"`{given}` is for what a channel has: --from CHANNEL" in done.err


@pytest.mark.parametrize("given", [("s3://it",), ("./here", "--url", "s3://it")])
def test_a_bucket_is_nothing_that_installers_read(
    torchyard: Command, given: tuple[str, ...]
) -> None:
    done = torchyard("smoke", "--from", *given)
    assert done.code == 2
    assert "no installer reads `s3://it`" in done.err
    assert "--url https://" in done.err
