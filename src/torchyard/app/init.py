"""Write a first torchyard.toml, from what the source of a project says."""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from torchyard.compute.registry import PLAIN
from torchyard.config.document import Document
from torchyard.config.evaluate import NO_RELEASE, VERSION
from torchyard.config.known_extensions import known_extension
from torchyard.config.load import config_of
from torchyard.config.recipes import DEFAULT_RECIPE, known_recipes
from torchyard.config.starter import Answers, show_download, starter
from torchyard.config.tables import load_tables
from torchyard.doctor.tree import read_tree
from torchyard.errors import TorchyardError, UsageError
from torchyard.host.machine import glibc_version, platform_name, python_name
from torchyard.host.package_indexes import configured_indexes
from torchyard.host.snapshot import unpack_archive
from torchyard.index.simple.sdist import download_sdist, find_sdist
from torchyard.model.config import own_release
from torchyard.model.lock import BuildLock
from torchyard.model.recipe import Dimension
from torchyard.model.suggest import did_you_mean
from torchyard.model.tables import Release
from torchyard.plan.build import make_plan
from torchyard.toolchain.pypi import locks
from torchyard.toolchain.reading.project import ProjectReading, read_project
from torchyard.toolchain.reading.source_text import SourceLine

_EXTENSION = next(name for name, shape in known_recipes().items() if shape.is_extension)
_ANYWAY = f"--recipe {_EXTENSION} writes a file all the same"
_MOST_SHOWN = 6
_TELLING = ("recipe", "name", "version")


class StartedFile(NamedTuple):
    """The text of a new file, and what is worth knowing of it, by subject."""

    text: str
    notes: Mapping[str, str]
    is_extension: bool


def start_file(
    file: str, given: Mapping[str, str], lists: Mapping[str, tuple[str, ...]]
) -> StartedFile:
    """Return a file for a project: that of an sdist, of a directory, or of a repository.

    `given` and `lists` have what the user says, by the names of `init`'s options.
    """
    answers = _answers(Path(file).parent, given, lists)
    text, is_extension = starter(answers, load_tables()), answers.recipe == _EXTENSION
    row = Release(libraries={compute: {} for compute in answers.compute})
    new = {name: row for name in answers.torch if name not in load_tables().releases}
    try:
        lock = BuildLock(releases=new if is_extension else {})
        make_plan(config_of(file, Document(file, text), lock=lock))
    except TorchyardError as error:
        msg = f"these answers make no plan: {error}"
        raise UsageError(msg, hint=error.diagnostics[0].hint) from error
    return StartedFile(text, {**answers.notes, **dict(_lists(answers.reading))}, is_extension)


def _answers(here: Path, given: Mapping[str, str], lists: Mapping[str, tuple[str, ...]]) -> Answers:
    if "sdist" in given:
        return _for_sdist(given, lists)
    if "git" in given or "rev" in given:
        if "path" in given:
            msg = "a source is a directory or a repository: --path excludes --git and --rev"
            raise UsageError(msg)
        return _Chooser(given, lists, ProjectReading(), {}).answers()
    tree = here / given.get("path", ".")
    reading, torch = ProjectReading(), read_tree(tree).version
    if given.get("recipe", _EXTENSION) == _EXTENSION and not torch:
        reading = read_project(tree)
    if reading.backend and not reading.is_extension and given.keys().isdisjoint(_TELLING):
        raise _refusal(reading, reading.name.text if reading.name else "the project here")
    if not reading.is_extension and "recipe" not in given:
        reading = ProjectReading()
    source = {"path": given.get("path", ".")} if "path" in given or reading.backend or torch else {}
    return _Chooser({"torch tree": torch, **given}, lists, reading, source).answers()


def _for_sdist(given: Mapping[str, str], lists: Mapping[str, tuple[str, ...]]) -> Answers:
    if given.keys() & {"git", "rev", "path", "name", "version"}:
        msg = "--sdist says what the project is, and where: it excludes --name, --path and such"
        raise UsageError(msg)
    found = find_sdist(given["sdist"], configured_indexes())
    with TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        unpack_archive(str(download_sdist(found, Path(folder))), found.sha256, tree)
        reading = read_project(tree)
    newer = ""
    if found.newest:
        git = reading.repository or "its repository"
        newer = f"{found.newest} is newer, and has no sdist: --git {git} --rev TAG builds it"
    if not (reading.is_extension or "recipe" in given):
        raise _refusal(reading, f"{found.name} {found.version}", newer)
    source = {"sdist": f"{found.name}=={found.version}", "sha256": found.sha256}
    known = {"name": found.name, "version": found.version, "newer": newer}
    return _Chooser(known | dict(given), lists, reading, source).answers()


def _refusal(reading: ProjectReading, title: str, newer: str = "") -> UsageError:
    """Return the error for a project that is no extension."""
    why = "is pure Python: nothing in it is compiled, and pip installs it for any torch"
    if reading.compiles:
        why = f"is compiled ({reading.compiles.where}), and nothing shows that it is against torch"
    elif reading.brings:
        why = f"has nothing to compile: it brings libraries, such as {reading.brings}"
    return UsageError(f"{title} {why}", hint="; ".join(filter(None, (newer, _ANYWAY))))


class _Chooser:
    """Chooses what the user does not say: as the project's source does, or else the usual."""

    def __init__(
        self,
        given: Mapping[str, str],
        lists: Mapping[str, tuple[str, ...]],
        reading: ProjectReading,
        source: Mapping[str, str],
    ) -> None:
        self.given = given
        self.lists = lists
        self.reading = reading
        self.source = source
        self.tables = load_tables()
        self.newest = list(self.tables.releases)[-1]

    def answers(self) -> Answers:
        reading = self.reading
        usual = _EXTENSION if reading.is_extension else DEFAULT_RECIPE
        recipe = known_recipes()[self.given.get("recipe", usual)]
        here = re.sub(r"[^A-Za-z0-9]+", "-", Path.cwd().name).strip("-") or recipe.name
        name = self._text("name", reading.name.text if reading.name else recipe.project or here)
        first = (
            "0.1.0" if recipe.is_extension else self.given.get("torch tree") or f"{self.newest}.0"
        )
        if reading.version and VERSION.fullmatch(reading.version.text):
            first = reading.version.text
        version = self._text("version", first)
        if not VERSION.fullmatch(version):
            msg = f"--version: `{version}` is not a public version"
            raise UsageError(msg)
        own, known = own_release(version), self.tables.known(recipe)
        own = own if own in self.tables.releases else NO_RELEASE
        torch = (
            self._releases()
            if recipe.is_extension
            else self._several("torch", own, (*self.tables.releases, NO_RELEASE))
        )
        if len(torch) > 1 and not recipe.is_extension:
            msg = "--torch: torch itself takes the libraries of one release"
            raise UsageError(msg)
        compute = self._several("compute", self._computes(torch), known[Dimension.COMPUTE])
        python = self._several("python", self._python(), known[Dimension.PYTHON])
        repository = f"https://github.com/{recipe.repository or f'{name}/{name}'}"
        git = {"git": self._text("git", repository), "rev": self._text("rev", f"v{version}")}
        is_read = recipe.is_extension and reading.backend is not None
        return Answers(
            recipe=recipe.name,
            name=name,
            version=version,
            source=self.source or git,
            platform=self._several("platform", platform_name(), known[Dimension.PLATFORM]),
            compute=compute,
            python=python,
            package=self._several("package", "wheel", known[Dimension.PACKAGE]),
            torch=torch,
            notes=dict(self._notes(name, torch, compute, python)) if is_read else {},
            reading=reading,
        )

    def _notes(
        self, name: str, torch: Collection[str], compute: Collection[str], python: Collection[str]
    ) -> Iterator[tuple[str, str]]:
        """Yield why choices were made, by key."""
        reading, row = self.reading, known_extension(name)
        for key, line in (("name", reading.name), ("version", reading.version)):
            if key not in self.given:
                yield key, f"From {line.where}." if line else f"A guess: correct it, or --{key}."
        if reading.torch and reading.backend:
            where = f"{reading.torch.text} in {reading.torch.where}"
            yield "recipe", f"{reading.backend.text} builds it, against torch: {where}."
        if newer := self.given.get("newer"):
            yield "source", f"{newer}."
        if glibc := glibc_version():
            older = "`root` in [toolchain] is for older systems"
            yield "platform", f"Wheels can need this machine's glibc, {glibc}, or newer; {older}."
        yield "compute", _about_compute(reading, compute)
        if text := _fit("torch", reading.torch_ranges, torch):
            yield "torch", text
        if text := _fit("Python", _some(reading.requires_python), map(_dotted, python)):
            yield "python", text
        parts = (("", row.always), (" for cpu", row.cpu), (" for GPUs", row.gpu))
        sets = [f"{key}={value}{cells}" for cells, part in parts for key, value in part.items()]
        if sets:
            yield "env", f"torchyard sets {', '.join(sets)}: {row.why} ({row.source})."

    def _computes(self, torch: tuple[str, ...]) -> str:
        """Return the usual compute platforms: also PyPI's CUDA if the project has code for it."""
        if (cuda := self.reading.cuda) is None:
            return PLAIN
        release = self.tables.releases.get(torch[0]) or self.tables.releases[self.newest]
        versions = {name: self.tables.compute[name].version for name in release.libraries}
        offered = [name for name, version in versions.items() if f"cuda-{version}" in locks()][:1]
        if not (self.reading.cuda_only and offered):
            return ",".join((PLAIN, *offered))
        if PLAIN in self.lists["compute"] and "recipe" not in self.given:
            msg = f"the project compiles for CUDA only: {cuda.text} in {cuda.where}"
            raise UsageError(msg, hint=f"pass --compute {offered[0]}; {_ANYWAY}")
        return offered[0]

    def _python(self) -> str:
        """Return the Python that runs, or else the newest that the project takes."""
        ranges, here = _some(self.reading.requires_python), python_name()
        names = [name for name, row in self.tables.pythons.items() if not row.free_threaded]
        fitting = [name for name in names if _is_in(ranges, _dotted(name))] or [here]
        return here if here in fitting else fitting[-1]

    def _releases(self) -> tuple[str, ...]:
        """Return the torch releases to compile against: the newest that the project takes."""
        for word in self.lists["torch"]:
            if own_release(word) != word:
                msg = f"--torch: `{word}` is not a torch release, such as 2.15"
                raise UsageError(msg)
        ranges = self.reading.torch_ranges
        fitting = [name for name in self.tables.releases if _is_in(ranges, name)]
        return self.lists["torch"] or tuple((fitting or [self.newest])[-1:])

    def _text(self, key: str, usual: str) -> str:
        answer = self.given.get(key, usual).strip()
        if not answer:
            msg = f"--{key}: an empty answer is not enough"
            raise UsageError(msg)
        return answer

    def _several(self, key: str, usual: str, known: Collection[str]) -> tuple[str, ...]:
        found = self.lists[key] or tuple(usual.split(","))
        for word in found:
            if word not in known:
                msg = f"--{key}: there is no `{word}`; {did_you_mean(word, known)}"
                raise UsageError(msg)
        return found


def _some(line: SourceLine | None) -> tuple[SourceLine, ...]:
    return (line,) if line else ()


def _dotted(python: str) -> str:
    """Return the version of a Python: `3.11` for `cp311`."""
    return f"3.{re.sub('[^0-9]', '', python)[1:]}"


def _about_compute(reading: ProjectReading, compute: Collection[str]) -> str:
    text = "It has no code for CUDA."
    if line := reading.cuda:
        text = "It compiles for CUDA only" if reading.cuda_only else "It has code for CUDA"
        text += f": {line.text} in {line.where}." if line.line else f": {line.file}."
    if PLAIN in compute:
        text += " PyPI's torch for cpu is one with CUDA, of some GB; `lock` says which it takes."
    return text


def _is_in(ranges: Collection[SourceLine], version: str) -> bool:
    """Return whether a version is in all ranges; those that can't be read count as any."""
    for line in ranges:
        with suppress(InvalidSpecifier):
            if not SpecifierSet(line.text).contains(f"{version}.0"):
                return False
    return True


def _fit(what: str, ranges: Collection[SourceLine], chosen: Iterator[str] | Collection[str]) -> str:
    """Return which versions a project asks for, and which of the chosen ones are not that."""
    asked = ", ".join(f"{line.text} ({line.where})" for line in ranges)
    bad = ", ".join(version for version in chosen if not _is_in(ranges, version))
    text = f"It asks for {what} {asked}." if asked else ""
    return f"{text} That is not {bad}." if bad else text


def _lists(reading: ProjectReading) -> Iterator[tuple[str, str]]:
    """Yield what the file has as lists, in a few words."""
    asked = [f"{one.text}={one.default}" for one in reading.switches if not one.is_cmake]
    needed = [f"{line.text} ({line.where})" for line in reading.build_requires]
    found = [show_download(one) for one in reading.downloads]
    for key, title, items in (
        ("switches", "It reads", asked),
        ("requires", "Its build needs, and does not declare:", needed),
        ("downloads", "A build has no network, and this one downloads:", found),
    ):
        if items:
            more = f", and {len(items) - _MOST_SHOWN} more" if len(items) > _MOST_SHOWN else ""
            yield key, f"{title} {', '.join(items[:_MOST_SHOWN])}{more}."
