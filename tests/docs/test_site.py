"""The site's pages link as the Markdown does, and what a release would upload is examined."""

import re
import tomllib
import zipfile
from pathlib import Path

import pytest
from scripts.release import faults_of, obstacles
from scripts.site import SiteError, entries, relinked, site_path
from tests.support.helpers import ROOT

from torchyard.cli.main import torchyard

METADATA = """\
Metadata-Version: 2.4
Name: demo
Version: 1.0
License-Expression: MIT
Description-Content-Type: text/markdown

# Demo
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("docs/guides/check-a-package.md", "guides/check-a-package.md"),
        ("docs/evidence/README.md", "evidence/findings.md"),
        ("SECURITY.md", "report-a-vulnerability.md"),
        ("examples/small/torchyard.toml", "files/examples/small/torchyard.toml.md"),
        (".ci/nightly.toml", "files/ci/nightly.toml.md"),
    ],
)
def test_place_of_a_file_on_the_site(path: str, expected: str) -> None:
    assert site_path(path) == expected


def test_links_that_leave_docs_lead_to_pages_of_the_site() -> None:
    linked: set[str] = set()
    text = "[a](../../examples/small/torchyard.toml) `[b](../x.md)` [c](see-a-plan.md#d) [e](https://f)"
    found = relinked("docs/guides/index.md", text, linked)
    assert found == (
        "[a](../files/examples/small/torchyard.toml.md) `[b](../x.md)` [c](see-a-plan.md#d) "
        "[e](https://f)"
    )
    assert linked == {"examples/small/torchyard.toml", "docs/guides/see-a-plan.md"}


def test_a_link_to_a_directory_is_refused() -> None:
    with pytest.raises(SiteError, match="link to one of its files"):
        relinked("docs/index.md", "[a](../examples)", set())


def test_navigation_is_read() -> None:
    assert list(entries([{"A": "a.md"}, {"B": ["b.md", {"C": ["c.md"]}]}])) == [
        "a.md",
        "b.md",
        "c.md",
    ]


def test_every_guide_is_in_the_list_of_guides() -> None:
    listed = set(re.findall(r"\]\((.*?)\)", (ROOT / "docs/guides/index.md").read_text("utf-8")))
    guides = {path.name for path in (ROOT / "docs/guides").glob("*.md")} - {"index.md"}
    assert guides <= listed


def test_guides_are_few_and_begin_with_what_a_reader_has_and_gets() -> None:
    guides = [path for path in (ROOT / "docs/guides").glob("*.md") if path.name != "index.md"]
    assert len(guides) <= 25
    for guide in guides:
        beginning = guide.read_text("utf-8").split("\n\n")[1]
        assert beginning.startswith("**You have** "), guide.name
        assert "**You get** " in " ".join(beginning.split()), guide.name


def test_there_is_one_tagline() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    tagline = project["description"]
    for page in ("README.md", "docs/index.md"):
        assert (ROOT / page).read_text("utf-8").splitlines()[2] == f"{tagline}."
    site = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
    assert site["site_description"] == tagline
    assert f"abstract: {tagline}.\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert torchyard.help
    assert torchyard.help.startswith(f"{tagline}.\n")


def make_wheel(folder: Path, metadata: str) -> Path:
    path = folder / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("demo-1.0.dist-info/METADATA", metadata)
    return path


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Version: 1.0\n", "Version: one\n", "version"),
        ("License-Expression: MIT\n", "", "no licence expression"),
        ("# Demo", "[a](b.md)", "relative link b.md"),
        ("text/markdown", "text/plain", "no description in Markdown"),
        ("\n\n#", "\nRequires-Dist: a @ https://b.example/a.whl\n\n#", "an address"),
    ],
)
def test_what_pypi_would_reject_is_found(tmp_path: Path, old: str, new: str, fault: str) -> None:
    assert list(faults_of(make_wheel(tmp_path, METADATA))) == []
    (found,) = faults_of(make_wheel(tmp_path, METADATA.replace(old, new)))
    assert fault in found


def test_a_missing_file_is_found(tmp_path: Path) -> None:
    assert list(faults_of(tmp_path / "demo-1.0.tar.gz")) == ["is missing"]


def test_versions_of_a_release_agree() -> None:
    """What else may stand in its way, such as changes that are not committed, comes and goes."""
    assert [why for why in obstacles() if "version" in why and "towncrier" not in why] == []
