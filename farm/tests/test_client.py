"""Errors of the client for a master that is down, or incomplete."""

import json
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from farm.tests.farms import TrialFarm, wait_until
from tests.support.helpers import WORKS, make_project
from tests.support.schemas import validate
from tests.support.services import LOOPBACK, reserved_port
from torchyard.errors import ElsewhereError, HostError
from torchyard_farm.client.web_api import MasterClient
from torchyard_farm.settings.farm import load_farm, parse_farm


def master_at(port: int) -> MasterClient:
    return MasterClient(parse_farm(f'file = "torchyard.toml"\nweb = "{LOOPBACK}:{port}"\n'))


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[int]:
    """The port of another web server that has a page of the same name."""
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
    with pytest.raises(HostError, match="is not the master of a farm"):
        master_at(stranger).workers()


def test_a_master_that_does_not_run_is_told_so() -> None:
    began = time.monotonic()
    with reserved_port() as port, pytest.raises(ElsewhereError) as caught:
        master_at(port).workers()
    assert time.monotonic() - began < 30, "told at once"
    (told,) = caught.value.diagnostics
    assert told.what.startswith("the master does not answer: ")
    assert (told.hint or "").startswith("check that it is running (`torchyard farm start`)")


@pytest.mark.integration
@pytest.mark.slow
def test_a_plan_that_nobody_can_read_hides_no_other(tmp_path: Path) -> None:
    """Nor does it block the master: that is visible without a worker."""
    file = make_project(tmp_path / "project", WORKS)
    with TrialFarm(tmp_path / "farm", file, "sqlite:///state.sqlite", ("w1",)) as farm:
        folder = farm.master / "plans"
        folder.mkdir(exist_ok=True)
        (folder / "a-torn.json").write_bytes(b"\xff{")
        (folder / "b-newer.json").write_text('{"version":2,"jobs":[{}]}', encoding="ascii")
        farm.start_master()
        plan = farm.submit()
        wait_until(lambda: bool(farm.buildsets()), 240, farm.log)
        assert MasterClient(load_farm(farm.master)).unfinished(plan) == {0}
        status = json.loads(farm.run("status", "--json"))
        validate(status, "farm-status")
        assert [one["id"] for one in status["plans"]] == [plan]
        torn, newer = status["unreadable"]
        assert (torn["id"], newer["id"]) == ("a-torn", "b-newer")
        assert "this version of torchyard-farm can't read the plan" in torn["why"]
        assert "upgrade" in newer["hint"]
        assert farm.has_said("plan a-torn is skipped")
        assert farm.text("plugins/plans/").count("unreadable") == 4  # a word, and its colour
        with pytest.raises(OSError, match="500"):
            farm.text("plugins/plans/a-torn")
        farm.run("cancel", "a-torn")
        farm.wait_done("a-torn")
