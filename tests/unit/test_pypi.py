"""Environments of jobs: what several of them need is downloaded once."""

from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread

import pytest
from tests.support.made_wheel import make_wheel

from torchyard.errors import ConfigError
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


def test_what_a_library_of_the_toolkit_requires_of_another_the_toolkit_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(tmp_path / "wheels", "vendor_dnn", requires=["vendor-blas"])
    make_wheel(tmp_path / "wheels", "other", requires=["missing"])
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    python, vendor = running_interpreter(), ["vendor-dnn", "vendor-blas"]
    with pytest.raises(ConfigError, match="requires `vendor-blas`"):
        pypi.make_environment(python, ["vendor-dnn==1.0"], tmp_path / "one")
    pypi.make_environment(python, ["vendor-dnn==1.0"], tmp_path / "two", of_toolkit=vendor)
    assert list(tmp_path.glob("two/lib/python/site-packages/vendor_dnn/__init__.py"))
    wanted = ["other==1.0", "vendor-dnn==1.0"]
    with pytest.raises(ConfigError, match="`other` requires `missing`") as raised:
        pypi.make_environment(python, wanted, tmp_path / "three", of_toolkit=vendor)
    assert "vendor" not in str(raised.value)
