"""Indexes for each torch and compute: what they show, and the page for `--find-links`."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.channel_reader import assert_right
from tests.support.channels import put, wheel

from torchyard.errors import PublishError
from torchyard.index.entry import State
from torchyard.index.simple.section import required_torch, wheel_requirements
from torchyard.index.views import (
    View,
    admits_torch,
    home_of,
    in_view,
    torch_label,
    torch_release,
    views_made_by,
)
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.ops.yank import yank
from torchyard.publish.select import parse_selection

REQUIREMENTS = ("", "==2.12.*", "==2.13.*", "==2.13.0", ">=2.12", "<2.13", "!=2.13.0")
VARIANTS = ("", "cpu", "cu130")


@pytest.mark.parametrize(
    ("requirement", "release"),
    [
        ("==2.13.*", "2.13"),
        ("==2.13.0", "2.13"),
        ("==2.13.1+cu130", "2.13"),
        ("~=2.13.0", "2.13"),
        (">=2.13,<2.14", "2.13"),
        ("==2.15.0.dev20261117", "2.15"),
        ("~=2.13", ""),
        (">=2.10", ""),
        ("<2.14", ""),
        ("==2.*", ""),
        ("", ""),
        ("oops", ""),
    ],
)
def test_the_release_that_a_file_is_compiled_against(requirement: str, release: str) -> None:
    assert torch_release(requirement) == release
    assert torch_label(requirement) == release or requirement


@pytest.mark.parametrize(
    ("requirement", "torch", "fits"),
    [
        ("==2.13.*", "2.13.1", True),
        ("==2.13.*", "2.13.0a0", True),
        ("==2.13.*", "2.12.0", False),
        ("==2.13.1", "2.13", True),
        ("==2.13.1", "2.13.0", False),
        (">=2.10", "2.9", False),
        (">=2.10", "2.11", True),
    ],
)
def test_a_torch_fits_by_its_version_or_by_its_release(
    requirement: str, torch: str, fits: bool
) -> None:
    assert admits_torch(requirement, torch) is fits


@given(st.sampled_from(VARIANTS), st.sampled_from(REQUIREMENTS))
def test_every_file_is_in_the_indexes_that_exist_because_of_it(variant: str, torch: str) -> None:
    kind = (variant, torch)
    made = views_made_by([kind])
    assert all(View.parse(view).shows(kind) for view in made)
    assert {str(home_of(kind))} - {""} <= made
    assert all(str(View.parse(view)) == view for view in made)


@given(st.lists(st.tuples(st.sampled_from(VARIANTS), st.sampled_from(REQUIREMENTS)), unique=True))
def test_an_index_of_a_torch_is_a_part_of_that_of_its_variant(kinds: list[tuple[str, str]]) -> None:
    entries = tuple(
        wheel("ext", str(number), variant, [f"torch{torch}"] if torch else []).entry
        for number, (variant, torch) in enumerate(kinds)
    )
    state = State(entries=entries)
    for view in map(View.parse, views_made_by(kinds)):
        shown = in_view(state, str(view))
        assert all(entry in in_view(state, view.variant) for entry in shown)
        left_out = [entry for entry in in_view(state, view.variant) if entry not in shown]
        assert all(not admits_torch(entry.torch, view.torch) for entry in left_out if view.torch)


def pages(folder: Path, path: str) -> str:
    return (folder / path).read_text(encoding="utf-8")


def test_a_channel_has_an_index_for_each_torch_and_compute(tmp_path: Path) -> None:
    channel = Channel.at(str(tmp_path), make=True)
    put(channel, wheel("helper"), wheel("torch", "2.13.0", "cpu"))
    put(channel, wheel("ext", "1.0", "cpu", ["torch==2.12.*"]))
    newer = wheel("ext", "1.1", "cpu", ["torch==2.13.*"])
    put(channel, newer, wheel("ext", "1.1", "cu130", ["torch==2.13.*"]))
    assert_right(channel)
    assert channel.head().variants == (
        "cpu",
        "cu130",
        "torch-2.12+cpu",
        "torch-2.13+cpu",
        "torch-2.13+cu130",
    )
    found = pages(tmp_path, "torch-2.13+cpu/ext/index.html")
    assert newer.entry.file.replace("+", "%2B") in found
    assert "ext-1.0" not in found
    assert {folder.name for folder in (tmp_path / "torch-2.13+cpu").iterdir()} == {
        "ext",
        "helper",
        "index.html",
        "index.json",
        "torch",
    }
    links = pages(tmp_path, "torch-2.13.0+cpu.html")
    assert 'href="packages/' in links
    assert links.count("<a ") == 1, "only what is compiled against this torch"
    yank(
        channel, parse_selection(["ext==1.1"]), "broken", ChangeReason("test", newer.entry.uploaded)
    )
    assert 'data-yanked="broken"' in pages(tmp_path, "torch-2.13.0+cpu.html")
    assert_right(channel)


def test_one_more_file_changes_only_the_pages_of_its_torch(tmp_path: Path) -> None:
    channel = Channel.at(str(tmp_path), make=True)
    put(channel, wheel("ext", "1.0", "cpu", ["torch==2.12.*"]))
    put(channel, wheel("ext", "1.1", "cpu", ["torch==2.13.*"]))
    paths = ("torch-2.12+cpu/ext/index.html", "torch-2.12.0+cpu.html")
    before = [pages(tmp_path, path) for path in paths]
    put(channel, wheel("ext", "1.2", "cpu", ["torch==2.13.*"]))
    assert [pages(tmp_path, path) for path in paths] == before
    assert pages(tmp_path, "torch-2.13.0+cpu.html").count("<a ") == 2


@pytest.mark.parametrize(
    ("lines", "release"),
    [
        (("torch", "torch==2.15.*"), "2.15"),
        (("Torch==2.15.*", "torch>=2.0"), "2.15"),
        (("torch>=2.13", "torch<2.14", "torch==1.0; extra == 'old'"), "2.13"),
        (("torch==2.13.*", "torch==2.9.*; sys_platform == 'win32'"), "2.13"),
        (("torch==2.13.*; sys_platform == 'linux'", "torch==2.9.*; os_name == 'nt'"), "2.13"),
        (("torch", "numpy==2.13.*"), ""),
    ],
)
def test_all_requirements_of_torch_decide(lines: tuple[str, ...], release: str) -> None:
    """An extension's project may have one of its own, beside that of the cell."""
    text = "Metadata-Version: 2.1\nName: x\nVersion: 1\n"
    about = text + "".join(f"Requires-Dist: {line}\n" for line in lines)
    assert torch_release(required_torch(about.encode())) == release


def test_requirements_in_too_many_parentheses_are_malformed() -> None:
    about = f"Name: x\nVersion: 1\nRequires-Dist: torch; {'(' * 5000}\n".encode()
    assert required_torch(about) == ""
    with pytest.raises(PublishError, match="which is malformed"):
        list(wheel_requirements("x-1-py3-none-any.whl", about))
