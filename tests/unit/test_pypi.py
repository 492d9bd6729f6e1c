"""Environments of jobs: what several of them need is downloaded once."""

from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread

import pytest

from torchyard.host.cache import cache_folder
from torchyard.host.locks import locked
from torchyard.toolchain import pypi
from torchyard.toolchain.interpreters import running_interpreter


def test_packages_are_downloaded_by_one_process_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    called: list[str] = []
    made, downloads = Event(), Event()

    def call_uv(arguments: Sequence[str]) -> None:  # plays uv, which would download
        called.append(arguments[0])
        (downloads if arguments[0] == "pip" else made).set()

    monkeypatch.setattr(pypi, "call_uv", call_uv)
    monkeypatch.setattr(pypi, "_check_complete", lambda *_: None)
    arguments = (running_interpreter(), ["torch==2.13.0"], tmp_path / "env")
    thread = Thread(target=pypi.make_environment, args=arguments)
    folder = cache_folder("downloads")
    assert folder
    with locked(folder / "lock", wait=True):
        thread.start()
        assert made.wait(60)
        assert not downloads.wait(0.2)
    thread.join()
    assert called == ["venv", "pip"]
