"""Fixtures of several modules."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from farm.tests.farms import postgres, postgres_programs


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield "sqlite:///state.sqlite"
        return
    if postgres_programs() is None:
        pytest.skip("there is no PostgreSQL: apt-get install postgresql")
    with postgres() as url:
        yield url


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack
