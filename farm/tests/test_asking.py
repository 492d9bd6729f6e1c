"""What those are told who ask a master that is not there."""

import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.services import LOOPBACK, reserved_port
from torchyard.errors import ElsewhereError, HostError
from torchyard_farm.asking.master import Master
from torchyard_farm.settings.farm import parse_farm


def master_at(port: int) -> Master:
    return Master(parse_farm(f'file = "torchyard.toml"\nweb = "{LOOPBACK}:{port}"\n'))


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[int]:
    """The port of a web server that has a page of the right name."""
    (tmp_path / "api/v2").mkdir(parents=True)
    (tmp_path / "api/v2/workers").write_text("<!DOCTYPE html>", encoding="ascii")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer((LOOPBACK, 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def test_a_stranger_is_no_master(stranger: int) -> None:
    with pytest.raises(HostError, match="is no master of a farm"):
        master_at(stranger).workers()


def test_a_master_that_does_not_run_is_told_so() -> None:
    began = time.monotonic()
    with reserved_port() as port, pytest.raises(ElsewhereError) as caught:
        master_at(port).workers()
    assert time.monotonic() - began < 10, "told at once"
    (told,) = caught.value.diagnostics
    assert told.what.startswith("the master does not answer: ")
    assert (told.hint or "").startswith("is it running? `torchyard farm start` starts it")
