"""Settings and fixtures for all tests."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.support.faults import FaultyProxy
from tests.support.helpers import Command, Output, call_main, shared_folder
from tests.support.installers import Installer, Pip, Uv
from tests.support.served import Served, make_release, serve_bucket, serve_directory
from tests.support.services import Place, S3Server, shared_s3_server
from tests.support.wheels import CPU, shared_wheel

from torchyard.host import secrets
from torchyard.workspace import torch_releases

_NIGHTLY = (("bucket", Pip), ("directory", Uv))

settings.register_profile("local", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=50,  # the same ones each time: more of them, and others, are drawn every night
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "nightly", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# Whoever starts the tests in the background may ignore it, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def _unsynced() -> Iterator[None]:
    """Sync nothing in this process: only `test_power_cuts.py` loses power, in processes of its own.

    Tests that look at the order of syncs put a function of their own in this place.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture
def torchyard(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Iterator[Command]:
    """Run the command in this process, wide enough to break no line, and without colour."""
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr(torch_releases, "kept_torches", list)  # those of this machine are others
    monkeypatch.setattr(secrets, "_taken", {})  # else texts of later tests lose such words, too

    def run(*args: object) -> Output:
        return call_main([str(arg) for arg in args], monkeypatch, capfdbinary)

    before = signal.getsignal(signal.SIGTERM)
    yield run
    signal.signal(signal.SIGTERM, before)  # else who ends the tests fails one, and ends nothing


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Start one S3 server for a test run: 4 to 9 seconds, 150 MB of memory or more."""
    with shared_s3_server(shared_folder(tmp_path_factory)) as server:
        yield server


@pytest.fixture
def s3_place(s3_server: S3Server) -> Place:
    """Give the test a prefix of its own."""
    return s3_server.place()


@pytest.fixture
def s3_proxy(s3_server: S3Server) -> Iterator[FaultyProxy]:
    """Put a proxy in front of the server: `s3_place.behind(s3_proxy.endpoint)`."""
    with FaultyProxy(s3_server.endpoint) as proxy:
        yield proxy


@pytest.fixture(params=["directory", "bucket"])
def served(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    torchyard: Command,
) -> Iterator[Served]:
    """Serve a channel by nginx: one in a directory, and one in a bucket."""
    if request.param == "directory":
        serving = serve_directory(tmp_path, torchyard)
    else:
        server = request.getfixturevalue("s3_server")
        serving = serve_bucket(server, tmp_path, torchyard, monkeypatch)
    with serving as served:
        yield served


@pytest.fixture(params=[Pip(), Uv()], ids=["pip", "uv"])
def installer(request: pytest.FixtureRequest) -> Installer:
    """Install by pip, and by uv."""
    installer: Installer = request.param
    return installer


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the wheels of `tests.support.served.make_release`."""
    folder = tmp_path_factory.mktemp("release")
    make_release(folder)
    return folder


@pytest.fixture(scope="session")
def torch_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Get a real wheel of 190 MB, for CPUs only; tests do not change it."""
    return shared_wheel(tmp_path_factory, CPU, "3.11")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses a service; CI runs pip with one kind of channel, and uv with the other."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            params = item.callspec.params
            if (params.get("served"), type(params.get("installer"))) in _NIGHTLY:
                item.add_marker("slow")
        if isinstance(item, pytest.Function) and "s3_server" in item.fixturenames:
            item.add_marker("integration")


def pytest_collection_finish() -> None:
    """Let the garbage collector skip what collecting has made: thousands of tests."""
    gc.collect()
    gc.freeze()
