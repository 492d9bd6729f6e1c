"""Write a first torchyard.toml from the source of a project."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from msgspec.structs import replace
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from torchyard.compute.registry import PLAIN
from torchyard.config.conda_starter import asked_recipe, conda_starter
from torchyard.config.document import Document
from torchyard.config.evaluate import GLIBC, NO_RELEASE, VERSION
from torchyard.config.known_extensions import known_extension
from torchyard.config.load import config_of
from torchyard.config.recipes import DEFAULT_RECIPE, known_recipes
from torchyard.config.starter import Answers, show_download, starter
from torchyard.config.tables import load_tables
from torchyard.doctor.tree import read_tree
from torchyard.errors import ElsewhereError, HostError, TorchyardError, UsageError
from torchyard.host.files import HOME, exists, write_text
from torchyard.host.git import is_commit
from torchyard.host.git_fetch import resolve_commit
from torchyard.host.machine import glibc_version, platform_name, python_name
from torchyard.host.network_settings import network_settings
from torchyard.host.snapshot import check_out, unpack_archive
from torchyard.index.simple.sdist import download_sdist, find_sdist
from torchyard.model.config import own_release
from torchyard.model.lock import BuildLock
from torchyard.model.tables import Release
from torchyard.package.wheel.manylinux import image_for
from torchyard.plan.build import make_plan
from torchyard.toolchain.conda_recipe import find_conda_recipe
from torchyard.toolchain.pypi import locks
from torchyard.toolchain.reading.project import ProjectReading, read_project
from torchyard.toolchain.reading.source_text import DownloadKind, SourceLine
from torchyard.workspace.arguments import check_name
from torchyard.workspace.progress import ignore_line

_EXTENSION = next(name for name, shape in known_recipes().items() if shape.is_extension)
_ANYWAY = f"--recipe {_EXTENSION} writes a file all the same"
_MOST_SHOWN = 6
_EXCLUDES = {
    "feedstock": ("git", "rev", "path", "sdist"),
    "sdist": ("git", "rev", "path", "name", "version"),
    "path": ("git", "rev"),
}
_USUAL_GLIBC = "2.28"
"""The glibc of torch's own wheels."""

Lists = Mapping[str, tuple[str, ...]]


class _StartedFile(NamedTuple):
    """The text of a new file, and notes by subject."""

    text: str
    notes: Mapping[str, str]
    is_extension: bool


class _Project(NamedTuple):
    """A project: the reading of its source, the keys of [source], and other facts."""

    reading: ProjectReading = ProjectReading()
    source: Mapping[str, str] = {}
    known: Mapping[str, str] = {}
    newer: str = ""


def write_first_file(
    file: str = "torchyard.toml",
    *,
    force: bool = False,
    on_line: Callable[[str], object] = ignore_line,
    **options: str | tuple[str, ...] | None,
) -> None:
    """Write a configuration for the project of an sdist, of a directory, or of a repository.

    Args:
        file: The file to write.
        force: Replace an existing file.
        on_line: Called with the reasons of choices.
        options: The user's options, named as in `torchyard init`.
    """
    if exists(file) and not force:
        msg = f"`{file}` exists already"
        raise HostError(msg, hint="pass --force to replace it")
    given = {key: value for key, value in options.items() if isinstance(value, str)}
    if empty := [key for key, value in given.items() if not value]:
        msg = f"--{empty[0]}: it is empty"
        raise UsageError(msg)
    check_name(given.get("recipe", _EXTENSION), known_recipes(), "recipe")
    for key, others in _EXCLUDES.items():
        if key in given and (both := [name for name in others if name in given]):
            msg = f"--{key} says where the source is: it excludes --{both[0]}"
            raise UsageError(msg)
    lists = {key: value for key, value in options.items() if isinstance(value, tuple)}
    started = _start(file, given, lists)
    write_text(file, started.text, replace=force)
    _ignore_home(Path(file).parent)
    for key, note in started.notes.items():
        if note:
            on_line(f"{key}: {' '.join(note.split())}")  # names of files can have line ends
    then = "lock" if started.is_extension else "plan"
    on_line(f"wrote {file}; now try: torchyard {then} -f {file}")


def _ignore_home(folder: Path) -> None:
    """Let git ignore torchyard's home directory beside the file."""
    path = folder / ".gitignore"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    if path.is_symlink() or HOME in (line.strip("/*\r ") for line in text.split("\n")):
        return
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" if text and not text.endswith("\n") else "")
        file.write(f"/{HOME}/\n")


def _start(file: str, given: Mapping[str, str], lists: Lists) -> _StartedFile:
    if (folder := asked_recipe(Path(file).parent, given, lists)) is not None:
        return _start_conda(file, folder, lists["platform"])
    if "sdist" in given:
        project = _of_sdist(given)
    elif "git" in given:
        project = _of_repository(given)
    elif "rev" in given:
        project = _Project()
    else:
        project = _of_folder(given, Path(file).parent / given.get("path", "."))
    answers = _Chooser(given, lists, project).answers()
    text, is_extension = starter(answers, load_tables()), answers.recipe == _EXTENSION
    row = Release(libraries={compute: {} for compute in answers.compute})
    new = {name: row for name in answers.torch if name not in load_tables().releases}
    _try_plan(file, text, BuildLock(releases=new if is_extension else {}))
    return _StartedFile(text, {**answers.notes, **dict(_lists(answers.reading))}, is_extension)


def _start_conda(file: str, folder: Path, platforms: tuple[str, ...]) -> _StartedFile:
    """Return the file for a conda recipe, which is run as it is."""
    beside = Path(file).resolve().parent
    text = conda_starter(folder.resolve(), beside, platforms, platform_name(), load_tables())
    _try_plan(file, text, BuildLock())
    note = f"{find_conda_recipe(folder)}, run as it is"
    return _StartedFile(text, {"recipe": note}, is_extension=False)


def _try_plan(file: str, text: str, lock: BuildLock) -> None:
    try:
        make_plan(config_of(file, Document(file, text), lock=lock))
    except TorchyardError as error:
        msg = f"these answers make no plan: {error}"
        raise UsageError(msg, hint=error.diagnostics[0].hint) from error


def _of_folder(given: Mapping[str, str], tree: Path) -> _Project:
    path, torch = {"path": given.get("path", ".")}, read_tree(tree).version
    if torch or given.get("recipe", _EXTENSION) != _EXTENSION:
        known = {"version": torch} if torch else {}
        return _Project(source=path if torch or "path" in given else {}, known=known)
    reading = read_project(tree)
    if reading.backend and (reading.is_extension or "recipe" in given):
        return _Project(reading, path)
    if reading.backend and given.keys().isdisjoint({"name", "version"}):
        raise _refusal(reading, reading.name.text if reading.name else "the project here")
    return _Project(source=path if "path" in given else {})


def _of_repository(given: Mapping[str, str]) -> _Project:
    """Return the facts of a repository; if it can't be fetched, a note with an alternative."""
    url, source = given["git"], {key: given[key] for key in ("git", "rev") if key in given}
    known = (shape.repository or f"{name}/{name}" for name, shape in known_recipes().items())
    if given.get("recipe", _EXTENSION) != _EXTENSION or any(part in url for part in known):
        return _Project()
    try:
        with TemporaryDirectory() as folder:
            tree, commit = Path(folder, "tree"), _find_commit(url, given.get("rev", "HEAD"))
            check_out(url, commit, tree, submodules=False)
            is_torch, reading = bool(read_tree(tree).version), read_project(tree)
    except (ElsewhereError, HostError) as error:
        cause = str(error).partition("\n")[0]
        newer = f"Nothing of it was read: {cause}. Clone it, and run `torchyard init` there"
        return _Project(newer=newer)
    if is_torch:
        return _Project()
    if not (reading.is_extension or "recipe" in given):
        raise _refusal(reading, reading.name.text if reading.name else url)
    own = [d for d in reading.downloads if d.kind is not DownloadKind.SUBMODULE]
    reading = replace(reading, downloads=tuple(own))  # submodules are checked out
    return _Project(reading, source if "rev" in source else {**source, "commit": commit})


def _find_commit(url: str, revision: str) -> str:
    found = revision if is_commit(revision) else resolve_commit(url, revision)
    if found is None:
        msg = f"{url} has no `{revision}`"
        raise HostError(msg)
    return found


def _of_sdist(given: Mapping[str, str]) -> _Project:
    found = find_sdist(given["sdist"], network_settings().indexes)
    with TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        unpack_archive(str(download_sdist(found, Path(folder))), found.sha256, tree)
        reading = read_project(tree)
    newer = f"{found.newest} is newer, and has no sdist" if found.newest else ""
    if newer and reading.repository:
        newer += f": --git {reading.repository} --rev TAG builds it"
    if not (reading.is_extension or "recipe" in given):
        raise _refusal(reading, f"{found.name} {found.version}", newer)
    source = {"sdist": f"{found.name}=={found.version}", "sha256": found.sha256}
    return _Project(reading, source, {"name": found.name, "version": found.version}, newer)


def _refusal(reading: ProjectReading, title: str, newer: str = "") -> UsageError:
    """Return the error for a project that is not an extension."""
    why = "is pure Python: nothing in it is compiled, and pip installs it for any torch"
    if reading.compiles:
        why = f"is compiled ({reading.compiles.where}), and nothing shows that it is against torch"
    elif reading.brings:
        why = f"has nothing to compile: it brings libraries, such as {reading.brings}"
    return UsageError(f"{title} {why}", hint="; ".join(filter(None, (newer, _ANYWAY))))


class _Chooser:
    """Chooses values that the user omits: from the project's source, or else defaults."""

    def __init__(self, given: Mapping[str, str], lists: Lists, project: _Project) -> None:
        self.given = {**project.known, **given}
        self.lists = lists
        self.project = project
        self.reading = project.reading
        self.tables = load_tables()
        self.newest = list(self.tables.releases)[-1]

    def answers(self) -> Answers:
        reading = self.reading
        usual = _EXTENSION if reading.is_extension else DEFAULT_RECIPE
        recipe = known_recipes()[self.given.get("recipe", usual)]
        here = re.sub(r"[^A-Za-z0-9]+", "-", Path.cwd().name).strip("-") or recipe.name
        usual = reading.name.text if reading.name else recipe.project or here
        name = self.given.get("name", usual)
        usual = "0.1.0" if recipe.is_extension else f"{self.newest}.0"
        if reading.version and VERSION.fullmatch(reading.version.text):
            usual = reading.version.text
        version = self.given.get("version", usual)
        git = f"https://github.com/{recipe.repository or f'{name}/{name}'}"
        git_source = {
            "git": self.given.get("git", git),
            "rev": self.given.get("rev", f"v{version}"),
        }
        release = own_release(version)
        release = release if release in self.tables.releases else NO_RELEASE
        torch = self.lists["torch"] or ((self._release(),) if recipe.is_extension else (release,))
        if len(torch) > 1 and not recipe.is_extension:
            msg = "--torch: torch itself uses the libraries of one release"
            raise UsageError(msg)
        for word in self.lists["torch"]:
            if own_release(word) != word:
                msg = f"--torch: `{word}` is not a torch release, such as {self.newest}"
                raise UsageError(msg)
        platform = self.lists["platform"] or (platform_name(),)
        glibc, image = self._system(platform)
        answers = Answers(
            recipe=recipe.name,
            name=name,
            version=version,
            source=self.project.source or git_source,
            platform=platform,
            compute=self._computes(torch[0]),
            python=self.lists["python"] or (python_name(),),
            package=self.lists["package"] or ("wheel",),
            torch=torch,
            image=image,
            offered=image_for(_USUAL_GLIBC, platform[0].partition("-")[2]),
            glibc=glibc,
            reading=reading,
        )
        if not (recipe.is_extension and reading.backend):
            newer = self.project.newer
            return replace(answers, notes={"source": f"{newer}."}) if newer else answers
        return replace(answers, notes=dict(self._notes(answers)))

    def _system(self, platform: tuple[str, ...]) -> tuple[str, str]:
        """Return the promised glibc, and the image to build in; "" if none is requested."""
        glibc, image = self.given.get("glibc", ""), self.given.get("image", "")
        if not glibc or image:
            return glibc, image
        if not GLIBC.fullmatch(glibc) or len(platform) > 1:
            why = "names no image" if len(platform) > 1 else "is no version, such as 2.28"
            msg = f"--glibc {glibc} {why}"
            raise UsageError(msg, hint="pass --image NAME, of one for all platforms")
        image = image_for(glibc, platform[0].partition("-")[2])
        if not image:
            msg = f"there is no image of PyPA for glibc {glibc}"
            raise UsageError(msg, hint="pass --image NAME")
        return glibc, image

    def _notes(self, answers: Answers) -> Iterator[tuple[str, str]]:
        """Yield reasons of choices, by key."""
        reading, row = self.reading, known_extension(answers.name)
        for key, line in (("name", reading.name), ("version", reading.version)):
            if key not in self.given:
                yield key, f"From {line.where}." if line else f"A guess: correct it, or --{key}."
        if reading.torch and reading.backend:
            where = f"{reading.torch.text} in {reading.torch.where}"
            yield "recipe", f"{reading.backend.text} builds it, against torch: {where}."
        if self.project.newer:
            yield "source", f"{self.project.newer}."
        if glibc := glibc_version():
            older = f"--glibc {_USUAL_GLIBC} is for older systems"
            if not answers.image:
                yield "platform", f"Wheels can need this machine's glibc, {glibc}; {older}."
        yield "compute", _about_compute(reading, answers.compute)
        yield "torch", _fit("torch", reading.torch_ranges, answers.torch)
        rows = [self.tables.pythons.get(name) for name in answers.python]
        ranges = (reading.requires_python,) if reading.requires_python else ()
        yield "python", _fit("Python", ranges, tuple(row.version for row in rows if row))
        parts = (("", row.always), (" for cpu", row.cpu), (" for GPUs", row.gpu))
        sets = [f"{key}={value}{cells}" for cells, part in parts for key, value in part.items()]
        if sets:
            yield "env", f"torchyard sets {', '.join(sets)}: {row.why} ({row.source})."

    def _computes(self, torch: str) -> tuple[str, ...]:
        """Return the compute platforms: usually also PyPI's CUDA if the project has code for it."""
        asked, cuda = self.lists["compute"], self.reading.cuda
        if cuda is None:
            return asked or (PLAIN,)
        release = self.tables.releases.get(torch) or self.tables.releases[self.newest]
        versions = {name: self.tables.compute[name].version for name in release.libraries}
        offered = [name for name, version in versions.items() if f"cuda-{version}" in locks()][:1]
        if not (self.reading.cuda_only and offered):
            return asked or (PLAIN, *offered)
        if PLAIN in asked and "recipe" not in self.given:
            msg = f"the project compiles for CUDA only: {cuda.text} in {cuda.where}"
            raise UsageError(msg, hint=f"pass --compute {offered[0]}; {_ANYWAY}")
        return asked or tuple(offered)

    def _release(self) -> str:
        """Return the newest torch release that the project accepts."""
        ranges = self.reading.torch_ranges
        return [self.newest, *(name for name in self.tables.releases if _is_in(ranges, name))][-1]


def _about_compute(reading: ProjectReading, compute: tuple[str, ...]) -> str:
    text = "No code for CUDA was found."
    if line := reading.cuda:
        text = "It compiles for CUDA only" if reading.cuda_only else "It has code for CUDA"
        text += f": {line.text} in {line.where}." if line.line else f": {line.file}."
    if PLAIN in compute:
        text += " PyPI's torch for cpu is one with CUDA, of some GB; `lock` says which it takes."
    return text


def _is_in(ranges: tuple[SourceLine, ...], version: str) -> bool:
    """Return whether a version is in all ranges; invalid ranges admit any."""
    for line in ranges:
        with suppress(InvalidSpecifier):
            if not SpecifierSet(line.text).contains(f"{version}.0"):
                return False
    return True


def _fit(what: str, ranges: tuple[SourceLine, ...], chosen: tuple[str, ...]) -> str:
    """Return the versions that a project requires, and chosen ones outside of these."""
    asked = ", ".join(f"{line.text} ({line.where})" for line in ranges)
    bad = ", ".join(version for version in chosen if not _is_in(ranges, version))
    text = f"It asks for {what} {asked}." if asked else ""
    return f"{text} That is not {bad}." if bad else text


def _lists(reading: ProjectReading) -> Iterator[tuple[str, str]]:
    """Yield short descriptions of the file's lists."""
    asked = [f"{s.text}={s.default}" for s in reading.switches if not s.is_cmake]
    needed = [f"{line.text} ({line.where})" for line in reading.build_requires]
    found = [show_download(download) for download in reading.downloads]
    for key, title, items in (
        ("switches", "It reads", asked),
        ("requires", "Its build needs, and does not declare:", needed),
        ("downloads", "A build has no network, and this downloads (see [[source.also]]):", found),
    ):
        if items:
            more = f", and {len(items) - _MOST_SHOWN} more" if len(items) > _MOST_SHOWN else ""
            yield key, f"{title} {', '.join(items[:_MOST_SHOWN])}{more}."
