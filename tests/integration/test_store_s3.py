"""What holds for a directory holds for a real S3 server: the same tests, on another store."""

import pytest
from tests.services import Place
from tests.unit import test_store as shared

from torchyard.store.store import Store

pytestmark = pytest.mark.integration

ONLY_IN_A_DIRECTORY = {
    "test_a_place_that_is_none",
    "test_gc_does_not_mind_writers_that_come_and_go",  # a directory shows their files
    "test_the_first_results_are_read_by_many_threads",  # it reads them as files
    "test_gc_removes_what_killed_writers_left",  # a bucket shows no such files
}

globals().update(
    {
        name: test
        for name, test in vars(shared).items()
        if name.startswith("test_") and name not in ONLY_IN_A_DIRECTORY
    }
)


@pytest.fixture
def store(s3_place: Place, monkeypatch: pytest.MonkeyPatch) -> Store:
    for name, value in s3_place.environment.items():
        monkeypatch.setenv(name, value)
    return Store.at(s3_place.url)
