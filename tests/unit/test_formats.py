"""A package format is compared by name in its own places only, and a new one is eight files."""

import ast
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from torchyard.checks.cell import cell_mismatches
from torchyard.checks.check import apply_rules
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.rule import Severity
from torchyard.config.tables import load_tables
from torchyard.index.entry import WHOLE, Entry, State
from torchyard.index.landing import LANDING
from torchyard.index.libtorch.section import LibtorchSection
from torchyard.index.page import Media, Page
from torchyard.index.section import Elsewhere, Staged
from torchyard.index.sections import SECTIONS
from torchyard.model.tables import Format, PackageKind
from torchyard.package.contents import Contents
from torchyard.package.format import Label
from torchyard.package.formats import FORMATS
from torchyard.package.libtorch.format import LibtorchFormat
from torchyard.package.policy import LayoutRow, load_layouts
from torchyard.package.read import read_package
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.publish import publish
from torchyard.publish.resolve.compatibility import MachineFacts
from torchyard.publish.resolve.resolve import find_package, install_commands
from torchyard.publish.select import choose, parse_selection
from torchyard.publish.smoke_targets import packages_under_test
from torchyard.publish.staged import read_staged
from torchyard.smoke.installation import Installer
from torchyard.smoke.installers import INSTALLERS, Ways
from torchyard.smoke.request import Request

SOURCES = Path(__file__).parents[2]
NAMES = {*FORMATS, *SECTIONS}
SUFFIXES = tuple(suffix for form in FORMATS.values() for suffix in form.SUFFIXES)

ZIP_READER = "src/torchyard/package/zip/"  # of archives, whichever format they are
OWN_PLACES = (
    ZIP_READER,
    *(
        f"src/{type(one).__module__.replace('.', '/').removesuffix(end)}"
        for registry, end in ((FORMATS, "format"), (SECTIONS, "section"))
        for one in registry.values()
    ),
)
"""The folder, or the module, of each format and each section."""

OTHER_MEANINGS = {
    ("src/torchyard/smoke/installation.py", "conda"): "the program that installs",
    ("src/torchyard/engines/builtin/local.py", "wheel"): "what is counted in a message",
    (
        "src/torchyard/features/init/use_case.py",
        "wheel",
    ): "what `init` suggests",
    ("src/torchyard/data/smoke/any/version.py", "wheel"): "an environment variable of smoke tests",
    ("src/torchyard/data/smoke/torch/facts.py", "wheel"): "an environment variable of smoke tests",
    ("src/torchyard/features/deps/command.py", "conda"): "the kind of a channel to ask",
    ("src/torchyard/insight/version_readings.py", "conda"): "where a version was read",
    ("src/torchyard/model/lock.py", "conda"): "the setting with conda environments",
    ("src/torchyard/toolchain/interpreters.py", "conda"): "where an interpreter was found",
    ("src/torchyard/model/recipe_output.py", "conda"): "what recipes of conda make",
    ("src/torchyard/recipes/tools/__init__.py", "tools.conda"): "the module of a recipe's tools",
    ("src/torchyard/recipes/tools/conda.py", "conda"): "a word of rattler-build",
    ("src/torchyard/toolchain/rattler_child.py", ".conda"): "files in rattler's cache",
    ("src/torchyard/toolchain/rattler_child.py", ".tar.bz2"): "files in rattler's cache",
    ("src/torchyard/index/filename.py", ".zip"): "the end of a source distribution's name",
    ("src/torchyard/index/entry.py", "simple"): "the view with the files of all variants",
}


def format_names(path: Path) -> Iterator[str]:
    """The strings of a module that name a format, a section, or the end of a package's name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in texts:
            continue
        value = node.value
        if isinstance(value, str) and not any(map(str.isspace, value)):
            is_name = value in NAMES or value.partition("/")[0] in NAMES
            if is_name or value.endswith(SUFFIXES):
                yield value


def test_names_of_formats_are_in_their_own_places() -> None:
    found = {
        (name, value)
        for folder in ("src/torchyard", "farm/src")
        for path in (SOURCES / folder).rglob("*.py")
        if not (name := str(path.relative_to(SOURCES))).startswith(OWN_PLACES)
        for value in format_names(path)
    }
    assert found == set(OTHER_MEANINGS)


def test_every_format_has_its_data_its_section_and_its_installers() -> None:
    assert FORMATS.keys() == load_tables().formats.keys() == load_layouts().layout.keys()
    assert FORMATS.keys() == {section.FORMAT for section in SECTIONS.values()} == INSTALLERS.keys()
    for name, form in FORMATS.items():
        assert name == form.NAME
    for name, section in SECTIONS.items():
        assert name == section.NAME


# ------------------------------------------------------------------------- a new format

WALK = (
    "src/torchyard/package/toy.py",
    "src/torchyard/index/toy.py",
    "pyproject.toml",
    "src/torchyard/index/sections.py",
    "src/torchyard/smoke/installers.py",
    "src/torchyard/data/formats.toml",
    "src/torchyard/data/layouts.toml",
    "src/torchyard/data/packages.toml",
)
"""The files of a new format: the two classes below, and a line or a table in each other one."""


class ToyFormat(LibtorchFormat):
    """A zip of another name: NAME-VERSION.toy."""

    NAME = "toy"
    SUFFIXES: tuple[str, ...] = (".toy",)

    def label(self, contents: Contents) -> Label:
        name, _, version = contents.file_name.removesuffix(".toy").rpartition("-")
        return Label(name=name, version=version)


class ToySection(LibtorchSection):
    """A section with one page for each project."""

    NAME = "toys"
    FORMAT = ToyFormat.NAME
    PACKAGE = "toy"
    TITLE = "toys"

    def pages(self, part: str, state: State, views: Iterable[str]) -> Iterator[Page]:
        for view in views:
            text = "".join(f"{entry.file}\n" for entry in state.entries)
            yield Page(f"toys/{part}/{view}.txt", text.encode(), Media.TEXT)

    def root_pages(
        self, listings: Mapping[str, Sequence[str]], _serials: Mapping[str, int]
    ) -> Iterator[Page]:
        yield Page("toys/index.txt", "\n".join(listings[WHOLE]).encode(), Media.TEXT)

    def stage(
        self, _path: Path, contents: Contents, entry: Entry, _md5: str, _project: str
    ) -> Staged:
        name = ToyFormat().label(contents).name
        return Staged(name, entry, name)

    def commands(
        self, _project: str, entry: Entry, address: str, _elsewhere: Elsewhere
    ) -> dict[str, str]:
        return {"play": f"play {address}/{entry.file}"}


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do by hand what the lines of the walk would do."""
    row = Format(implementation="toy:ToyFormat", library_pins=False, channels=False, split=False)
    kind = PackageKind(title="toy", format="toy", per_python=False, pinned=False)
    ways = INSTALLERS[LibtorchFormat.NAME]
    monkeypatch.setitem(FORMATS, ToyFormat.NAME, ToyFormat())
    monkeypatch.setitem(SECTIONS, ToySection.NAME, ToySection())
    monkeypatch.setitem(INSTALLERS, ToyFormat.NAME, Ways(ways.installers, ways.prepare))
    monkeypatch.setitem(load_tables().formats, ToyFormat.NAME, row)
    monkeypatch.setitem(load_tables().packages, "toy", kind)
    monkeypatch.setitem(load_layouts().layout, ToyFormat.NAME, LayoutRow(libraries=("lib",)))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    path = tmp_path / "dist" / "thing-1.0.toy"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("thing/lib/readme.txt", "a toy")
    return path


@pytest.mark.usefixtures("toy")
def test_a_new_format_goes_all_the_way_with_eight_files(package: Path, tmp_path: Path) -> None:
    assert len(WALK) <= 8
    assert all((SOURCES / place).exists() for place in WALK if not place.endswith("toy.py"))

    contents = read_package(package)
    assert contents.format == "toy"
    assert not list(cell_mismatches(contents, "thing-1.0/linux-x86_64/cpu-generic/any/toy"))
    (checked,) = apply_rules([contents], CheckPolicy(), date(2026, 11, 16))
    assert not [found for found in checked.findings if found.severity is Severity.ERROR]

    channel = Channel.at(str(tmp_path / "channel"), make=True)
    staged = read_staged([package.parent], "compute", "2026-11-16T10:00:00Z")
    assert [one.part for one in staged] == ["toys/thing"]
    publish(channel, channel.head(), staged, ChangeReason("test", "2026-11-16T10:00:00Z"))
    assert channel.objects.read("toys/thing/simple.txt") == b"thing-1.0.toy\n"
    assert channel.objects.read("toys/index.txt") == b"thing"
    assert b"1 package: toys." in (channel.objects.read(LANDING) or b"")

    facts = MachineFacts(python="cp312", platform="linux-x86_64")
    answer = find_package(channel, Requirement("thing"), "toy", facts, load_tables())
    assert install_commands(answer, "https://example.org") == {
        "play": "play https://example.org/thing-1.0.toy"
    }

    chosen = choose(channel, channel.head(), parse_selection(["thing==1.0"]))
    (target,) = packages_under_test(chosen, (tmp_path / "channel").as_uri())
    assert (target.format, target.name, target.version) == ("toy", "thing", "1.0")
    ways = INSTALLERS[target.format]
    install = ways.prepare(target, Request(today=date(2026, 11, 16)), Installer.UNZIP, ())
    assert Path(install(tmp_path / "installed").prefix, "lib/readme.txt").read_text() == "a toy"
