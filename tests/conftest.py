"""Settings and fixtures for all tests."""

import os

import pytest
from hypothesis import HealthCheck, settings
from tests.helpers import Command, Output, call_main

settings.register_profile("local", deadline=None)
settings.register_profile(
    "ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture
def torchyard(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Command:
    """Run the command in this process, wide enough to break no line, and without colour."""
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def run(*args: object) -> Output:
        return call_main([str(arg) for arg in args], monkeypatch, capfdbinary)

    return run
