"""`torchyard publish` and publish jobs, with real processes and a real server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.faults import FaultyProxy
from tests.support.made_wheel import make_wheel
from tests.support.publishing import PUBLISHES, make_publishing_project, torchyard
from tests.support.schemas import validate
from tests.support.services import Place

from torchyard.publish.channel.channel import Channel
from torchyard.store.store import Store

pytestmark = pytest.mark.integration


def files_in(channel: Channel) -> list[str]:
    state = channel.state(channel.head(), "simple/demo")
    return [entry.file for entry in state.entries]


def test_a_build_ends_in_its_channel(tmp_path: Path) -> None:
    file = make_publishing_project(tmp_path)
    done = torchyard("build", "-f", file)
    assert done.returncode == 0, done.stderr
    channel = Channel.at(str(tmp_path / "channel"))
    assert files_in(channel) == ["demo-1.0-cp311-none-any.whl", "demo-1.0-cp312-none-any.whl"]
    (entry, _) = channel.state(channel.head(), "simple/demo").entries
    assert entry.cell == "demo-1.0/linux-x86_64/cpu-openblas/cp311/wheel"
    assert entry.variant == "cpu"
    store = Store.at(str(tmp_path / ".torchyard/store"))
    (result,) = [r for r in store.results() if r.spec.task.stage == "publish"]
    assert [each.path for each in result.tree.files] == ["published.json"]
    again = torchyard("build", "-f", file)
    assert "0 of" in again.stderr
    assert channel.head().generation == 1
    # A publish job that is done again changes nothing.
    store.objects.delete([f"results/{result.fingerprint[:2]}/{result.fingerprint}.json"])
    assert torchyard("build", "-f", file).returncode == 0
    assert channel.head().generation == 1


@pytest.mark.slow
def test_what_was_built_is_published_from_the_store(tmp_path: Path) -> None:
    file = make_publishing_project(tmp_path)
    assert torchyard("build", "-f", file, "package:*cp311*", "check:*cp311*").returncode == 0
    refused = torchyard("publish", "--to", "nightly", "-f", file)
    assert refused.returncode == 15
    assert "1 of 2 packages are missing" in refused.stderr
    assert "cp312/wheel" in refused.stderr
    assert "has not passed its smoke tests" in refused.stderr
    assert torchyard("build", "-f", file, "smoke:*cp311*").returncode == 0
    done = torchyard("publish", "--to", "nightly", "-f", file, "--partial", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    validate(document, "publish")
    channel = Channel.at(str(tmp_path / "channel"))
    assert channel.head().log[-1].why == "publish demo 1.0 (partial)"
    assert torchyard("build", "-f", file).returncode == 0, "the job adds what is missing"
    assert len(files_in(channel)) == 2
    assert not list((tmp_path / ".torchyard").glob("publish-*"))


FORGE = """\
import json, pathlib, sys, zipfile
from hashlib import sha256

out = pathlib.Path(sys.argv[1], "sub")
out.mkdir()
wheel = out / "torch-99.0-py3-none-any.whl"
about = "torch-99.0.dist-info"
with zipfile.ZipFile(wheel, "w") as archive:
    info = zipfile.ZipInfo(f"{about}/METADATA")
    archive.writestr(info, "Metadata-Version: 2.1\\nName: torch\\nVersion: 99.0\\n")
    archive.writestr(zipfile.ZipInfo("../../../.bashrc"), "echo here")
(true,) = pathlib.Path(sys.argv[2]).glob("*check.json")
report = json.loads(true.read_bytes())
report["packages"] = [{"sha256": sha256(wheel.read_bytes()).hexdigest()}]
(out / "check.json").write_text(json.dumps(report))
"""
"""Writes a package and a report about it, as `torchyard check` would if it found nothing."""


def test_a_step_does_not_publish_what_it_likes(tmp_path: Path) -> None:
    """It needs no more than to write to the result of its own job."""
    forge = '\n[[steps.package]]\nrun = "python3 {core}/forge.py {out} {core}"\n'
    copy = "cp {source}/make.py {source}/forge.py {source}/known-check.json {out}"
    text = PUBLISHES.replace("cp {source}/make.py {out}", copy)
    file = make_publishing_project(tmp_path, text.replace("\n[steps]\n", f"{forge}\n[steps]\n"))
    (tmp_path / "code/forge.py").write_text(FORGE, encoding="utf-8")
    report = torchyard("check", make_wheel(tmp_path / "dist"), "--json").stdout
    # With a line before it, as a report of torchyard's own is no part of a source.
    (tmp_path / "code/known-check.json").write_text(f"\n{report}", encoding="utf-8")
    done = torchyard("build", "-f", file)
    assert done.returncode != 0
    assert "a package job delivered `sub`, which is not a package" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("channel/**/torch-99.0*"))


@pytest.mark.slow
def test_a_package_whose_smoke_test_failed_is_not_published_by_name(tmp_path: Path) -> None:
    """Its steps embed no spec; the store knows nevertheless which job has delivered it."""
    text = PUBLISHES.replace("smoke = []", 'smoke = [{ run = "false" }]')
    file = make_publishing_project(tmp_path, text)
    make = tmp_path / "code/make.py"
    plain = make.read_text("utf-8").replace('f"{about}/torchyard-spec.json"', '"demo/notes"')
    make.write_text(plain, encoding="utf-8")
    failed = torchyard("build", "-f", file, "--keep-going", "-o", tmp_path / "dist")
    assert failed.returncode != 0
    everything = [tmp_path / "dist" / name for name in ("demo-1.0-cp311-none-any.whl",)]
    torchyard("store", "get", "package:*", "-o", tmp_path / "dist", "-f", file)
    for words in (everything, ()):
        refused = torchyard("publish", *words, "--to", "nightly", "-f", file, "--partial")
        assert refused.returncode == 15, refused.stderr
        assert "has not passed its smoke tests" in refused.stderr
        assert (
            "torchyard build smoke:demo-1.0/linux-x86_64/cpu-openblas/cp311/wheel" in refused.stderr
        )
    assert not (tmp_path / "channel/channel.json").exists()


@pytest.mark.slow
def test_a_channel_has_packages_from_elsewhere_tried(tmp_path: Path) -> None:
    demand = 'url = "channel"\nsmoke = "required"'
    text = PUBLISHES.replace('url = "channel"', demand) + '\n[smoke]\nlevel = "import"\n'
    file = make_publishing_project(tmp_path, text)
    make_wheel(tmp_path / "dist", "good")
    bad = make_wheel(tmp_path / "dist", "bad", text="raise ValueError('no')\n")
    refused = torchyard("publish", tmp_path / "dist", "--to", "nightly", "-f", file)
    assert refused.returncode == 15
    assert f"`{bad.name}` has not passed its smoke tests" in refused.stderr
    assert "`good" not in refused.stderr
    waived = f"smoke:{bad.name}=it is known to be bad"
    words = ("--to", "nightly", "-f", file, "--override", waived)
    done = torchyard("publish", tmp_path / "dist", *words)
    assert done.returncode == 0, done.stderr
    assert "it is known to be bad" in (tmp_path / "channel/simple/bad/index.html").read_text(
        "utf-8"
    )


def test_packages_are_promoted_and_not_published_to_a_channel_that_says_so(tmp_path: Path) -> None:
    text = PUBLISHES + '\n[channel.release]\nurl = "release"\npromote_from = "nightly"\n'
    file = make_publishing_project(tmp_path, text)
    make_wheel(tmp_path / "dist")
    for place in ("release", tmp_path / "release"):
        refused = torchyard("publish", tmp_path / "dist", "--to", place, "-f", file)
        assert refused.returncode == 15
        assert "takes packages from channel nightly only" in refused.stderr


def test_one_more_wheel_costs_ten_requests(
    tmp_path: Path, s3_place: Place, s3_proxy: FaultyProxy
) -> None:
    env = s3_place.behind(s3_proxy.endpoint).environment
    for number in range(5):
        make_wheel(tmp_path / "dist", version=f"1.{number}+cpu")
    first = torchyard("publish", tmp_path / "dist", "--to", s3_place.url, env=env)
    assert first.returncode == 0, first.stderr
    before = len(s3_proxy.requests)
    make_wheel(tmp_path / "more", version="1.9+cpu")
    done = torchyard("publish", tmp_path / "more", "--to", s3_place.url, env=env)
    assert done.returncode == 0, done.stderr
    assert len(s3_proxy.requests) - before <= 10, s3_proxy.requests[before:]


@pytest.mark.slow
def test_four_publishers_at_once_all_succeed(tmp_path: Path) -> None:
    place = tmp_path / "channel"
    for number in range(4):
        make_wheel(tmp_path / f"{number}", version=f"1.{number}")
    argv = [sys.executable, "-m", "torchyard", "publish"]
    running = [
        subprocess.Popen([*argv, str(tmp_path / f"{number}"), "--to", str(place)])
        for number in range(4)
    ]
    assert [process.wait(120) for process in running] == [0] * 4
    channel = Channel.at(str(place))
    assert files_in(channel) == [f"demo-1.{number}-py3-none-any.whl" for number in range(4)]
    assert channel.head().generation == 4
    assert not channel.mend(["simple/demo", ""])
