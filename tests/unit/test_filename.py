"""What the names of files say."""

import pytest
from packaging.utils import parse_wheel_filename

from torchyard.index.filename import read_name
from torchyard.package.wheel.compatible_tags import runs_on


@pytest.mark.parametrize(
    ("file", "project", "told"),
    [
        ("thing-1.0-py3-none-any.whl", "thing", ("thing", "1.0")),
        ("Two_Words-1.0.tar.gz", "two-words", ("two-words", "1.0")),
        ("two-words-1.0.zip", "two-words", ("two-words", "1.0")),
        ("thing-1.0-1.tar.gz", "thing", ("thing", "1.0.post1")),
        ("thing-1.0-beta.tar.gz", "thing", ("thing", "1.0b0")),
        ("other-1.0.tar.gz", "thing", ("other", "1.0")),
    ],
)
def test_names_are_read_as_installers_do(file: str, project: str, told: tuple[str, str]) -> None:
    named = read_name(file, project)
    assert (named.project, str(named.version)) == told


@pytest.mark.parametrize("file", ["thing-new.tar.gz", "thing-1.0.egg", "thing.whl", "", "-"])
def test_what_no_installer_can_read(file: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_name(file, "thing")


@pytest.mark.parametrize(
    ("tag", "pythons"),
    [
        ("cp312-cp312-win_amd64", {"cp312"}),
        ("cp313-cp313t-win_amd64", {"cp313t"}),
        ("cp39-abi3-win_amd64", {"cp39", "cp312", "cp313"}),
        ("py3-none-any", {"cp39", "cp312", "cp313", "cp313t"}),
        ("py312-none-win_amd64", {"cp312", "cp313", "cp313t"}),
        ("cp313-none-any", {"cp313", "cp313t"}),
        ("pp310-pypy310_pp73-win_amd64", set()),
    ],
)
def test_which_pythons_take_a_tag(tag: str, pythons: set[str]) -> None:
    (told,) = parse_wheel_filename(f"thing-1.0-{tag}.whl")[3]
    known = ("cp39", "cp312", "cp313", "cp313t")
    assert {python for python in known if runs_on(python, told)} == pythons
