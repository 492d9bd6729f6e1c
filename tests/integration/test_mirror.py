"""`torchyard channel mirror`: a part of another index, however often one has to begin."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.attested import PROJECT, WHEEL, attested_wheel, forged_provenance
from tests.support.channels import LATER, NOW
from tests.support.faults import Fault, FaultyProxy, Request
from tests.support.helpers import Command
from tests.support.indexes import CPU, CUDA, Kind, make_channel, make_wheel
from tests.support.web import FileServer

from torchyard.errors import ElsewhereError
from torchyard.host.fetcher import directory_url
from torchyard.index.entry import Entry
from torchyard.publish.channel.channel import Channel
from torchyard.publish.mirror.mirror import Mirror
from torchyard.publish.mirror.select import MirrorRequest

pytestmark = pytest.mark.integration

MANY = "cp312-cp312-manylinux_2_28_x86_64"
LARGE = f"thing-{CUDA}-{MANY}.whl"
SMALL = f"thing-{CPU}-{MANY}.whl"
OLD = f"thing-{CPU}-cp311-cp311-manylinux_2_28_x86_64.whl"
MAC = f"thing-{CPU}-cp312-cp312-macosx_14_0_arm64.whl"
PURE = "other-1.0-py3-none-any.whl"
SIZE = 8 << 20


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """An index of somebody else, which happens to be one of ours."""
    folder = tmp_path / "theirs"
    kinds = [
        Kind("thing", CPU, MANY),
        Kind("thing", CPU, "cp311-cp311-manylinux_2_28_x86_64"),
        Kind("thing", CPU, "cp312-cp312-macosx_14_0_arm64"),
        Kind("thing", "0.9+cpu", MANY),
        Kind("other"),
    ]
    wheels = [make_wheel(folder, kind) for kind in kinds]
    wheels.append(make_wheel(folder, Kind("thing", CUDA, MANY), os.urandom(SIZE)))
    wheels.append(attested_wheel(folder))
    make_channel(tmp_path / "source", wheels)
    return tmp_path / "source"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def entries(channel: Path, project: str = "thing") -> dict[str, Entry]:
    ours = Channel.at(str(channel))
    state = ours.state(ours.head(), f"simple/{project}")
    return {entry.file: entry for entry in state.entries}


def page(source: Path, project: str) -> Path:
    return source / f"simple/{project}/index.json"


def only_html(source: Path) -> None:
    for path in source.glob("simple/**/index.json"):
        path.unlink()


@pytest.mark.parametrize("form", ["json", "html"])
def test_all_that_is_said_of_a_file_is_kept(
    form: str, source: Path, home: Path, torchyard: Command
) -> None:
    projects = ("thing", "other", PROJECT)
    theirs = {file: e for name in projects for file, e in entries(source, name).items()}
    if form == "html":
        only_html(source)
    with FileServer(source) as server:
        args = ("channel", "mirror", f"{server.url}/simple", "../ours")
        done = torchyard(*args, "thing==1.*", "other", PROJECT, "--json")
    assert (done.code, done.err) == (0, "")
    ours = {file: e for p in projects for file, e in entries(home / "../ours", p).items()}
    assert ours.keys() == {LARGE, SMALL, OLD, MAC, PURE, WHEEL}
    assert {file: entry.variant for file, entry in ours.items()} == {
        LARGE: "cu130",
        SMALL: "cpu",
        OLD: "cpu",
        MAC: "cpu",
        PURE: "",
        WHEEL: "",
    }
    assert ours[WHEEL].provenance
    if form == "json":  # HTML does not tell when a file was uploaded
        assert ours == {file: theirs[file] for file in ours}
    assert torchyard("channel", "check", "../ours", "--deep").code == 0
    assert not list(home.glob(".torchyard/mirror/*/*"))


def test_files_are_chosen_by_version_python_and_platform(
    source: Path, home: Path, torchyard: Command
) -> None:
    def chosen(*more: str) -> set[str]:
        args = ("channel", "mirror", source / "simple", "../ours", "--dry-run", "--json")
        done = torchyard(*args, *more)
        return {one["file"] for one in json.loads(done.out).get("files", ())}

    assert chosen("thing==0.9") == {f"thing-0.9+cpu-{MANY}.whl"}
    recent = "thing>=1"
    assert chosen(recent, "--python", "cp312") == {LARGE, SMALL, MAC}
    assert chosen(recent, "--python", "cp311") == {OLD}
    assert chosen(recent, "--platform", "macosx*") == {MAC}
    assert chosen("other", "--python", "cp312", "--platform", "macosx*") == {PURE}
    assert chosen("thing==7") == set()
    assert Channel(Channel.at("../ours", make=True).objects).head().generation == 0


def test_a_variant_can_be_chosen(source: Path, home: Path, torchyard: Command) -> None:
    args = (
        "channel",
        "mirror",
        source / "simple",
        "../ours",
        "other",
        "--variant",
    )
    assert torchyard(*args, "xpu").code == 0
    assert entries(home / "../ours", "other")[PURE].variant == "xpu"
    for taken in ("packages", "pins", "channel.json", "index.html", "../up", ""):
        assert torchyard(*args, taken).code == 2
    assert torchyard(*args, "xpu", "--python", "3.12").code == 2


def test_what_is_there_is_not_fetched_again(source: Path, home: Path, torchyard: Command) -> None:
    with FileServer(source) as server:
        args = ("channel", "mirror", f"{server.url}/simple", "../ours")
        assert torchyard(*args, "thing==1.0+cpu").code == 0
        fetched = server.sent(".whl")
        assert torchyard(*args, "thing==1.0+cpu").code == 0
        assert server.sent(".whl") == fetched
        assert torchyard(*args, "thing==1.*").code == 0
        assert server.sent(".whl") - fetched == (source / _path(source, LARGE)).stat().st_size
    assert Channel.at("../ours").head().generation == 2


def _path(source: Path, file: str) -> Path:
    (path,) = source.glob(f"packages/*/*/{file}")
    return path


def test_a_killed_run_goes_on_where_it_was(source: Path, home: Path, torchyard: Command) -> None:
    size = _path(source, LARGE).stat().st_size
    with FileServer(source, pause=0.03) as server:
        args = [
            "channel",
            "mirror",
            f"{server.url}/simple",
            "../ours",
            "thing==1.*",
        ]
        run = subprocess.Popen([sys.executable, "-m", "torchyard", *args])
        deadline = time.monotonic() + 60
        while not (got := _spooled(home)) > 2 << 20:
            assert time.monotonic() < deadline
            assert run.poll() is None
            time.sleep(0.05)
        run.send_signal(signal.SIGKILL)
        run.wait()
        got = _spooled(home)
        assert 0 < got < size
        assert Channel.at("../ours", make=True).head().generation == 0
        server.pause = 0
        server.served.clear()
        assert torchyard(*args).code == 0
        served = sorted(server.served, key=lambda one: one.first)  # the killed run's may be there
        sent = {one.path.rpartition("/")[2]: one for one in served if one.sent}
    assert sent[LARGE.replace("+", "%2B")].first == got
    assert sent[LARGE.replace("+", "%2B")].sent == size - got
    assert not [name for name in sent if name.endswith(".whl") and "cpu" in name]
    assert entries(home / "../ours").keys() == {LARGE, SMALL, OLD, MAC}
    assert torchyard("channel", "check", "../ours", "--deep", "--external", "other").code == 0


def _spooled(home: Path) -> int:
    return sum(path.stat().st_size for path in home.glob(f".torchyard/mirror/*/{LARGE}"))


def test_a_beginning_of_something_else_is_thrown_away(
    source: Path, home: Path, torchyard: Command
) -> None:
    with FileServer(source, pause=0.03) as server:
        args = [
            "channel",
            "mirror",
            f"{server.url}/simple",
            "../ours",
            "thing==1.*",
        ]
        run = subprocess.Popen([sys.executable, "-m", "torchyard", *args])
        while not _spooled(home):
            assert run.poll() is None
            time.sleep(0.05)
        run.kill()
        run.wait()
        (part,) = home.glob(f".torchyard/mirror/*/{LARGE}")
        part.write_bytes(b"x" * part.stat().st_size)
        server.pause = 0
        assert torchyard(*args).code == 0
    assert torchyard("channel", "check", "../ours", "--deep", "--external", "other").code == 0


def test_a_server_that_lies_is_found_out(source: Path, home: Path, torchyard: Command) -> None:
    path = _path(source, SMALL)
    path.write_bytes(path.read_bytes().replace(b"x = 1", b"x = 2"))
    with FileServer(source) as server:
        args = (
            "channel",
            "mirror",
            f"{server.url}/simple",
            "../ours",
            "thing==1.*",
        )
        done = torchyard(*args)
    assert done.code == 15
    assert f"`{SMALL}` does not match its index" in done.err
    assert Channel.at("../ours", make=True).head().generation == 0
    assert not list(Path("../ours").glob(f"packages/*/*/{SMALL}"))


def test_a_wheel_that_leads_elsewhere_is_refused(
    source: Path, home: Path, torchyard: Command
) -> None:
    path, told = _path(source, PURE), json.loads(page(source, "other").read_text())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../../.bashrc", "evil")
    told["files"][0]["hashes"] = {"sha256": sha256(path.read_bytes()).hexdigest()}
    told["files"][0]["size"] = path.stat().st_size
    page(source, "other").write_text(json.dumps(told))
    done = torchyard("channel", "mirror", source / "simple", "../ours", "other")
    assert done.code == 15
    assert f"`{PURE}` can't be unpacked: ../../.bashrc" in done.err
    assert Channel.at("../ours", make=True).head().generation == 0


def test_a_forged_provenance_is_not_offered(source: Path, home: Path, torchyard: Command) -> None:
    _path(source, f"{WHEEL}.provenance").write_bytes(forged_provenance())
    done = torchyard("channel", "mirror", source / "simple", "../ours", PROJECT)
    assert done.code == 0, done.err
    assert f"note: the provenance of `{WHEEL}` can't be verified" in " ".join(done.out.split())
    assert not entries(home / "../ours", PROJECT)[WHEEL].provenance
    assert not list(Path("../ours").rglob("*.provenance"))


def test_a_sidecar_that_lies_is_found_out(source: Path, home: Path, torchyard: Command) -> None:
    text = page(source, "other").read_text()
    digest = json.loads(text)["files"][0]["core-metadata"]["sha256"]
    page(source, "other").write_text(text.replace(digest, "0" * 64))
    done = torchyard("channel", "mirror", source / "simple", "../ours", "other")
    assert (done.code, "another METADATA" in done.err) == (15, True)


def test_a_file_without_a_hash_is_refused(source: Path, home: Path, torchyard: Command) -> None:
    told = json.loads(page(source, "other").read_text())
    told["files"][0]["hashes"] = {"md5": "0" * 32}  # which anybody can forge
    page(source, "other").write_text(json.dumps(told))
    args = ("channel", "mirror", source / "simple", "../ours", "other")
    done = torchyard(*args)
    assert (done.code, "--allow-unhashed" in done.err) == (15, True)
    assert torchyard(*args, "--allow-unhashed").code == 0
    assert entries(home / "../ours", "other")[PURE] == entries(source, "other")[PURE]


def test_a_hash_leads_to_no_other_file(source: Path, home: Path, torchyard: Command) -> None:
    """What is in the channel already is found by its hash, which has to be one."""
    make_channel(home / "../ours", [make_wheel(home / "wheels", Kind("thing"), b"x = 7\n")])
    (kept,) = (home / "../ours/packages").glob("*/*/thing-1.0-py3-none-any.whl")
    for name in (PURE, f"{PURE}.metadata", f"{PURE}.provenance"):
        kept.with_name(name).write_bytes(b"evil")
    told = json.loads(page(source, "other").read_text())
    told["files"][0]["hashes"] = {"sha256": f"00/../{kept.parts[-3]}/{kept.parts[-2]}"}
    page(source, "other").write_text(json.dumps(told))
    args = ("channel", "mirror", source / "simple", "../ours", "other")
    assert torchyard(*args).code == 15
    assert entries(home / "../ours", "other") == {}


def test_a_channel_keeps_the_bytes_it_has(source: Path, home: Path, torchyard: Command) -> None:
    make_channel(home / "../ours", [make_wheel(home / "wheels", Kind("other"), b"x = 7\n")])
    before = entries(home / "../ours", "other")
    done = torchyard("channel", "mirror", source / "simple", "../ours", "other")
    assert (done.code, "with other bytes" in done.err) == (15, True)
    assert entries(home / "../ours", "other") == before


def test_what_is_yanked_later_is_yanked_here(source: Path, home: Path, torchyard: Command) -> None:
    args = ("channel", "mirror", source / "simple", "../ours", "other")
    assert torchyard(*args).code == 0
    told = json.loads(page(source, "other").read_text())
    told["files"][0]["yanked"] = "it is broken"
    page(source, "other").write_text(json.dumps(told))
    assert torchyard(*args).code == 0
    assert entries(home / "../ours", "other")[PURE].yanked == "it is broken"
    assert torchyard(*args).code == 0
    assert Channel.at("../ours").head().generation == 2


def test_what_somebody_deleted_meanwhile_is_not_published(source: Path, home: Path) -> None:
    ours = home / "../ours"
    shutil.copytree(source / "packages", ours / "packages")  # as a killed run leaves it
    mirror = Mirror(
        directory_url(str(source / "simple")), Channel.at(str(ours), make=True), home, NOW
    )
    files = mirror.look(MirrorRequest(selects=("other",)), unhashed=False)
    assert [one.fate for one in files] == ["sent"]
    _path(ours, PURE).unlink()
    make_channel(ours, [make_wheel(home / "wheels", Kind("third"))])  # only others could delete it
    with pytest.raises(ElsewhereError, match="was just deleted"):
        mirror.take(files, LATER)
    assert not entries(ours, "other")


def test_it_bears_a_bad_line(source: Path, home: Path, torchyard: Command) -> None:
    """Every third request is refused, and every file breaks off a few times."""
    cuts: dict[str, int] = {}

    def plan(request: Request) -> Fault:
        if request.number % 3 == 0:
            return Fault.SLOW_DOWN
        cuts[request.path] = cuts.get(request.path, 0) + 1
        return Fault.CUT_ANSWER if cuts[request.path] <= 3 else Fault.NONE

    with FileServer(source) as server, FaultyProxy(server.url) as proxy:
        proxy.plan = plan
        args = (
            "channel",
            "mirror",
            f"{proxy.endpoint}/simple",
            "../ours",
            "thing==1.*",
        )
        assert torchyard(*args).code == 0
        sent = server.sent(LARGE.replace("+", "%2B"))
    assert SIZE < sent < 2 * SIZE  # it went on, and did not begin anew
    assert {entry.uploaded for entry in entries(home / "../ours").values()} == {NOW}
    assert torchyard("channel", "check", "../ours", "--deep", "--external", "other").code == 0
