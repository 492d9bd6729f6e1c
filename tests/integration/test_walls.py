"""Behind each wall, `doctor` says what it is, and the stories pass, or stop at once with the cause.

The stories are those of the first pages of the documentation, with smaller projects: an operator
becomes a wheel that is smoke tested, wheels become a channel, a library becomes packages.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.support.helpers import shared_folder
from tests.support.made_wheel import make_wheel
from tests.support.services import Place
from tests.support.walls import (
    PROJECTS,
    PROXY_LOGIN,
    SPELLINGS,
    WALLS,
    Authority,
    Behind,
    Done,
    Lab,
    Machine,
    forward_proxy,
    has_secret,
    make_index,
    make_torch,
)

from torchyard.config.credentials import take_credentials
from torchyard.doctor.bench import Bench, BuildDemand
from torchyard.doctor.checks.network import network
from torchyard.errors import ElsewhereError, HostError
from torchyard.host.fetcher import Fetcher
from torchyard.host.git_fetch import resolve_commit
from torchyard.host.locks import locked
from torchyard.host.network_faults import network_faults
from torchyard.publish.channel.channel import Channel
from torchyard.toolchain.index_wheels import resolve_wheels
from torchyard.toolchain.pypi import read_lock

pytestmark = [
    pytest.mark.integration,
    *(
        pytest.mark.skipif(not shutil.which(name), reason=f"there is no {name}")
        for name in ("bwrap", "faketime", "g++", "tinyproxy", "unshare")
    ),
]

BLAS = next(iter(read_lock("openblas").versions.items()))
TOOLS = ("setuptools==80.9.0", "ninja==1.13.0", "cmake==3.31.10", "==".join(BLAS))
AT_ONCE = 120
"""Seconds in which a command stops on a busy machine: uv tries for 7, and a build three times."""
STEPS = ("cc1plus", "/g++", "ninja ", "cmake ", "setup.py", "build_wheel")
"""What the commands of a build's steps have in them."""


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an index of real build tools, and of a torch that is none."""
    folder = shared_folder(tmp_path_factory) / "walls"
    with locked(folder.with_suffix(".lock"), wait=True):
        if not (folder / "simple").exists():
            wheels = folder / "wheels"
            words = ("-m", "pip", "download", "-qq", "--no-deps", "--dest", wheels, *TOOLS)
            subprocess.run([sys.executable, *words], check=True)
            make_torch(wheels)
            make_wheel(wheels, "needed", "1.0")
            make_index(folder / "root", sorted(wheels.glob("*.whl")))
            (folder / "root").rename(folder / "index")
            (folder / "simple").touch()
    return folder / "index"


@pytest.fixture(params=WALLS)
def wall(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@contextmanager
def built(wall: str, index: Path, folder: Path) -> Iterator[Behind]:
    """Build a wall in front of an index."""
    with ExitStack() as stack:
        parts = folder / "parts"
        parts.mkdir()
        yield WALLS[wall].make(Lab(parts, index, Authority.make(parts / "authority"), stack))


@pytest.fixture
def machine(wall: str, index: Path, tmp_path: Path) -> Iterator[Machine]:
    """Build the wall, and give the machine behind it."""
    with built(wall, index, tmp_path) as behind:
        yield prepared(behind, tmp_path / "machine")


def prepared(behind: Behind, folder: Path) -> Machine:
    machine = Machine(behind, folder)
    for name in ("smallops", "smalltorch"):
        shutil.copytree(PROJECTS / name, machine.folder / name)
    file = machine.folder / "smalltorch/torchyard.toml"
    text = file.read_text("utf-8")
    file.write_text(text.replace('["cp310", "cp311", "cp312", "cp313"]', '["cp311"]'), "utf-8")
    make_wheel(machine.folder / "wheels", "outer", "1.0", requires=["needed"])
    return machine


@pytest.fixture(scope="module")
def small_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an index with one wheel."""
    folder = tmp_path_factory.mktemp("index")
    make_index(folder / "root", [make_wheel(folder, "needed", "1.0")])
    return folder / "root"


SETTINGS = re.compile(r".*proxy.*|password.*|authority-(?!system).*|long-path")
"""The walls that are made of nothing but settings and servers."""


@pytest.mark.parametrize("name", [one for one in WALLS if SETTINGS.fullmatch(one)])
def test_doctor_uv_and_the_own_client_use_the_settings(
    name: str, small_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = WALLS[name]
    with built(name, small_index, tmp_path) as behind:
        machine = Machine(behind, tmp_path / "machine")
        for variable in os.environ.keys() - machine.env.keys():
            monkeypatch.delenv(variable)
        for variable, text in {**machine.env, "UV_HTTP_RETRIES": "0"}.items():
            monkeypatch.setenv(variable, text)
        told = [found.what for found in network(Bench(BuildDemand(title=name), {}))]
        assert [what for what in told if wall.says in what], told
        assert not has_secret(str(told).encode())
        if wall.stops:
            hint = network_faults()[wall.stops].hint
            for fetch in (read_page, resolve):
                with pytest.raises((HostError, ElsewhereError)) as caught:
                    fetch(behind.index)
                assert caught.value.diagnostics[0].hint == hint
            with pytest.raises((HostError, ElsewhereError)) as caught:
                resolve_commit(f"{behind.index}/x.git", "main")
            hints = {hint, network_faults()["network"].hint}
            assert caught.value.diagnostics[0].hint in hints, caught.value
            return
        assert "needed-1.0" in read_page(behind.index)
        assert resolve(behind.index) == "needed-1.0-py3-none-any.whl"


def read_page(index: str) -> str:
    return Fetcher(index).get(f"{index}/needed/").data.decode()


def resolve(_: str) -> str:
    (wheel,) = resolve_wheels(["needed"], "3.11", "x86_64-manylinux_2_28")
    return wheel.file


INIT = "init --recipe extension --name smallops --version 0.1.0 --path . --torch 2.13"
CELL = "--python cp311 --compute cpu -f torchyard.toml"
LITTLE = [
    word for stage in ("core", "bindings") for word in ("--set", f"requirements.{stage}.disk=1 GB")
]
SMOKE = ("--level", "import", "--environment", "clean", "--installer", "pip", "--installer", "uv")


def an_operator(machine: Machine) -> Iterator[Done]:
    """Yield the commands from a checkout to a smoke tested wheel."""
    folder = machine.folder / "smallops"
    yield machine.run(*f"{INIT} {CELL}".split(), cwd=folder)
    yield machine.run("lock", cwd=folder)
    yield machine.run("build", "--skip", "smoke:*", "-o", "dist", *LITTLE, cwd=folder)
    yield machine.run("smoke", *folder.glob("dist/*.whl"), *SMOKE, cwd=folder)


def a_channel(machine: Machine) -> Iterator[Done]:
    """Yield the commands from wheels to a channel."""
    if machine.index:
        yield machine.run("channel", "mirror", machine.index, "./channel", "needed")
    yield machine.run("smoke", *machine.folder.glob("wheels/*.whl"), *SMOKE)
    yield machine.run("publish", "wheels", "--to", "./channel", "--external", "needed")
    yield machine.run("channel", "check", "./channel")
    yield machine.run("which", "./channel", "outer", "--python", "cp311")


def a_library(machine: Machine) -> Iterator[Done]:
    """Yield the commands from a library to its compiled core."""
    folder = machine.folder / "smalltorch"
    yield machine.run("build", "core:*", *LITTLE, cwd=folder)
    yield machine.run("store", "ls", cwd=folder)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")
def test_stories(wall: str, machine: Machine) -> None:
    about = WALLS[wall]
    project = machine.folder / "smallops"
    doctor = machine.run("doctor", "--source", project, "--compute", "cpu")
    said = [line for line in doctor.said.splitlines() if about.says in line]
    print(f"{wall}: doctor: {said}")
    assert said, doctor.said
    ran = [doctor]
    for story in (an_operator, a_channel, a_library):
        for done in story(machine):
            ran.append(done)
            if done.code:
                break
        name = story.__name__
        print(f"{wall}: {name}: {ran[-1].code} after {ran[-1].seconds:.1f} s")
        if not about.stops:
            assert ran[-1].code == 0, ran[-1].said
            continue
        assert ran[-1].code, f"{name} passed"
        assert network_faults()[about.stops].hint in ran[-1].said, ran[-1].said
        assert ran[-1].seconds < AT_ONCE, ran[-1].said
    assert [done.said for done in ran if has_secret(done.said.encode())] == []
    assert machine.watch.looks
    assert machine.watch.arguments == set()
    assert [one for one in machine.watch.variables if any(step in one for step in STEPS)] == []
    assert machine.leaks() == []


def test_the_search_finds_a_secret(tmp_path: Path) -> None:
    machine = Machine(Behind(""), tmp_path)
    (machine.folder / "log").write_bytes(b"x" + SPELLINGS[1])
    with machine.watch:
        env = {**os.environ, "SECRET": SPELLINGS[0].decode()}
        code = "import sys, time; time.sleep(0.5)"
        subprocess.run([sys.executable, "-c", code, SPELLINGS[1].decode()], env=env, check=True)
    assert machine.leaks() == [str(machine.folder / "log")]
    assert machine.watch.arguments
    assert machine.watch.variables


@pytest.mark.slow
def test_a_bucket_is_reached_through_the_proxy(
    s3_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forward_proxy(tmp_path, password=True) as port:
        monkeypatch.setenv("HTTP_PROXY", f"http://{PROXY_LOGIN}@127.0.0.1:{port}")
        for name, text in s3_place.environment.items():
            monkeypatch.setenv(name, text)
        take_credentials()
        assert "HTTP_PROXY" not in os.environ
        assert not Channel.is_at(s3_place.url)
    assert s3_place.endpoint.removeprefix("http://") in (tmp_path / "tinyproxy.log").read_text()
