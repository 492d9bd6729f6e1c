"""What a smoke test knows of the package that it tests."""

from pathlib import Path

import pytest
from tests.helpers import SMALL, plan_of
from tests.made_wheel import make_wheel, order_for

from torchyard.checks.smoke.package_under_test import read_package_under_test

COMMIT = "704754640b09a082545e24a58c2425d9a1c18427"


@pytest.mark.parametrize(
    ("source", "commit"),
    [
        (f'git = "https://a.example/b"\ncommit = "{COMMIT}"', COMMIT),
        ('git = "https://a.example/b"\nrev = "v1"', "none"),
        (f'archive = "a.tar.gz"\nsha256 = "{"5" * 64}"', ""),
    ],
)
def test_the_commit_is_that_of_the_order(tmp_path: Path, source: str, commit: str) -> None:
    head, _, rest = SMALL.partition("[source]\n")
    text = f"{head}[source]\n{source}\n{rest[rest.index('[') :]}"
    wheel = make_wheel(tmp_path, order=order_for(plan_of(text), "linux-x86_64/cpu-mkl/cp312/wheel"))
    assert read_package_under_test(wheel).commit == commit


def test_a_package_without_an_order_may_be_of_any_commit(tmp_path: Path) -> None:
    assert read_package_under_test(make_wheel(tmp_path)).commit == ""
