"""Versions in any file."""

import re

from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from torchyard.insight.dependency_table import dependency_table
from torchyard.insight.drift import agree
from torchyard.insight.version_readings import ReadFrom, VersionReading, requirements_in

NAMES = sorted(dependency_table().pip_names())
VERSIONS = st.lists(st.integers(0, 99), min_size=1, max_size=4).map(lambda n: ".".join(map(str, n)))
PINS = st.tuples(st.sampled_from(NAMES), VERSIONS)
NOISE = st.sampled_from(["", "# numpy==1", "   ", "-r other.txt", "--hash=sha256:00 \\"])
SHAPES = {
    "requirements.txt": "{}=={}  # {}",
    "setup.py": '        "{}=={}",  # {}',
    "a.sh": "pip install {}=={}  # {}",
    "x.dist-info/METADATA": "Requires-Dist: {}=={}",
}


@given(st.sampled_from(sorted(SHAPES)), st.lists(PINS | NOISE))
def test_pins_are_read_with_their_lines(file: str, lines: list[tuple[str, str] | str]) -> None:
    shape = SHAPES[file]
    text = "\n".join(one if isinstance(one, str) else shape.format(*one, "six==9") for one in lines)
    names = dependency_table().pip_names()
    found = requirements_in(text, file, ReadFrom.TREE, names)
    assert [(one.dependency, str(one), one.line) for one in found] == [
        (names[one[0]], one[1], number)
        for number, one in enumerate(lines, 1)
        if not isinstance(one, str)
    ]


@given(st.text(), st.sampled_from(sorted(SHAPES)), st.booleans())
def test_any_text_can_be_read(text: str, file: str, required: bool) -> None:
    names = dependency_table().pip_names()
    lines = text.splitlines()
    for one in requirements_in(text, file, ReadFrom.TREE, names, required=required):
        plain = re.sub(r"\s", "", lines[one.line - 1])
        assert one.version in plain


def reading(version: str) -> VersionReading:
    return VersionReading(dependency="x", read_from=ReadFrom.TREE, version=version, file="f")


@given(VERSIONS, VERSIONS)
def test_agreement_is_mutual_and_a_version_agrees_with_ranges_that_contain_it(
    one: str, other: str
) -> None:
    assert agree(reading(one), reading(one))
    assert agree(reading(one), reading(other)) == agree(reading(other), reading(one))
    is_at_least = Version(one) >= Version(other)
    assert agree(reading(f"=={one}"), reading(f">={other}")) == is_at_least
