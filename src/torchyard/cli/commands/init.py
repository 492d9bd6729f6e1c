"""`torchyard init`: write a first torchyard.toml."""

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec

from torchyard.compute.registry import PLAIN
from torchyard.config.document import Document
from torchyard.config.evaluate import NO_RELEASE, VERSION
from torchyard.config.load import config_of
from torchyard.config.recipes import DEFAULT_RECIPE, known_recipes
from torchyard.config.starter import Answers, starter
from torchyard.config.tables import load_tables
from torchyard.doctor.tree import read_tree
from torchyard.errors import HostError, TorchyardError, UsageError
from torchyard.host.files import HOME, exists, write_text
from torchyard.host.machine import platform_name, python_name
from torchyard.model.config import own_release
from torchyard.model.lock import BuildLock
from torchyard.model.recipe import Dimension
from torchyard.model.suggest import did_you_mean
from torchyard.model.tables import Release
from torchyard.plan.build import make_plan
from torchyard.terminal.console import talk
from torchyard.toolchain.checkout import Checkout, read_checkout
from torchyard.toolchain.pypi import locks

_EXTENSION = next(name for name, shape in known_recipes().items() if shape.is_extension)


@click.command("init")
@click.option("-f", "--file", metavar="FILE", default="torchyard.toml", help="File to write.")
@click.option("--recipe", type=click.Choice(list(known_recipes())), help="Kind of project.")
@click.option("--name", help="Name of the distribution.")
@click.option("--version", help="Version to build.")
@click.option("--git", help="Repository of the source.")
@click.option("--rev", help="Commit or tag to build.")
@click.option("--path", help="Directory of the source, instead of a repository.")
@click.option("--sdist", metavar="NAME==VERSION", help="Sdist of an extension, from an index.")
@click.option("--platform", help="Platforms, with commas between them.")
@click.option("--compute", help="Compute platforms, with commas between them.")
@click.option("--python", help="Pythons, with commas between them.")
@click.option("--package", help="Package kinds, with commas between them.")
@click.option("--torch", help="Torch releases to compile against, or one to take libraries of.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def command(*, file: str, force: bool, **flags: str | None) -> None:
    """Write a small, commented torchyard.toml.

    Asks for what no flag gives, unless an extension is found here, whose files give it; without a
    terminal, uses the defaults.
    """
    if exists(file) and not force:
        msg = f"`{file}` exists already"
        raise HostError(msg, hint="pass --force to replace it")
    sdist = flags.pop("sdist")
    answers = _of_sdist(flags, sdist) if sdist else _of_folder(flags, Path(file).parent)
    text = starter(answers, load_tables())
    new = _unknown_releases(answers)
    try:
        make_plan(config_of(file, Document(file, text), lock=BuildLock(releases=new)))
    except TorchyardError as error:
        msg = f"these answers make no plan: {error}"
        raise UsageError(msg, hint=error.diagnostics[0].hint) from error
    write_text(file, text, replace=force)
    ignore_home(Path(file).parent)
    locked = known_recipes()[answers.recipe].is_extension
    talk(f"wrote {file}; now try: torchyard {'lock' if locked else 'plan'} -f {file}")


def ignore_home(folder: Path) -> None:
    """Let git ignore what torchyard writes beside its file, unless it does."""
    path = folder / ".gitignore"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    if path.is_symlink() or HOME in (line.strip("/*\r ") for line in text.split("\n")):
        return
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" if text and not text.endswith("\n") else "")
        file.write(f"/{HOME}/\n")


def _unknown_releases(answers: Answers) -> dict[str, Release]:
    """Return rows for torch releases that only an index can know, with all that is asked for."""
    if not known_recipes()[answers.recipe].is_extension:
        return {}
    row = Release(libraries={compute: {} for compute in answers.compute})
    return {name: row for name in answers.torch if name not in load_tables().releases}


def _of_folder(flags: dict[str, str | None], folder: Path) -> Answers:
    """Return the answers for a project, which may be in a directory."""
    if flags["git"]:
        return _Questions(flags, None).answers()
    tree = folder / (flags["path"] or ".")
    checkout = read_checkout(tree) if flags["recipe"] in (None, _EXTENSION) else None
    return _Questions(flags, checkout, read_tree(tree).version).answers()


def _of_sdist(flags: dict[str, str | None], asked: str) -> Answers:
    """Return the answers for an extension whose sdist is in an index."""
    from torchyard.host.package_indexes import configured_indexes
    from torchyard.host.snapshot import unpack_archive
    from torchyard.index.simple.sdist import download_sdist, find_sdist

    if any(flags[key] for key in ("git", "rev", "path", "name", "version")):
        msg = "--sdist says what the project is, and where: it excludes --name, --path and such"
        raise UsageError(msg)
    found = find_sdist(asked, configured_indexes())
    with TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        unpack_archive(str(download_sdist(found, Path(folder))), found.sha256, tree)
        checkout = read_checkout(tree)
    known = flags | {"recipe": _EXTENSION, "name": found.name, "version": found.version}
    answers = _Questions(known | {"path": "."}, checkout).answers()
    label = f"{found.name}=={found.version}"
    return msgspec.structs.replace(answers, path="", sdist=label, sha256=found.sha256)


class _Questions:
    """Asks for everything that no flag gives, and again if an answer is invalid."""

    def __init__(
        self, flags: dict[str, str | None], checkout: Checkout | None, torch: str = ""
    ) -> None:
        """`checkout` is the project itself, if it is at hand and compiled against torch.

        `torch` is its version if it is a tree of torch.
        """
        self.flags = flags
        self.tables = load_tables()
        self.checkout = checkout
        self.torch = torch

    def answers(self) -> Answers:
        usual = _EXTENSION if self.checkout else DEFAULT_RECIPE
        recipe = self._ask("recipe", "Kind of project", usual, one_of(known_recipes()))
        shape = known_recipes()[recipe]
        extension = shape.is_extension
        known = self.tables.known(shape)
        here = re.sub(r"[^A-Za-z0-9]+", "-", Path.cwd().name).strip("-") or recipe
        found = self.checkout if extension else None
        known_name = found.name.text if found and found.name else shape.project or here
        name = self._ask("name", "Name", known_name, something)
        first = "0.1.0" if extension else self.torch or f"{self._newest}.0"
        if found and found.version and VERSION.fullmatch(found.version.text):
            first = found.version.text
        version = self._ask("version", "Version", first, a_version)
        git, rev, path = self._source(shape.repository or f"{name}/{name}", version)
        return Answers(
            recipe=recipe,
            name=name,
            version=version,
            git=git,
            rev=rev,
            path=path,
            platform=self._several("platform", "Platforms", platform_name(), known),
            compute=self._several("compute", "Compute platforms", self._computes(found), known),
            python=self._several("python", "Pythons", python_name(), known),
            package=self._several("package", "Packages", "wheel", known),
            torch=self._against() if extension else (self._libraries_of(version),),
            notes=tuple(_notes(found, self.flags)) if found else (),
        )

    def _computes(self, found: Checkout | None) -> str:
        """Return the usual compute platforms: also PyPI's CUDA if the project has code for it."""
        if found is None or found.cuda is None:
            return PLAIN
        asked = (words(self.flags["torch"] or "") or (self._newest,))[0]
        release = self.tables.releases.get(asked) or self.tables.releases[self._newest]
        offered = [name for name in release.libraries if f"cuda-{self._version(name)}" in locks()]
        return ",".join((PLAIN, *offered[:1]))

    def _version(self, compute: str) -> str:
        return self.tables.compute[compute].version

    @property
    def _newest(self) -> str:
        return list(self.tables.releases)[-1]

    def _source(self, repository: str, version: str) -> tuple[str, str, str]:
        """Return repository and revision, or else a directory."""
        path = self.flags["path"] or ("." if self.checkout or self.torch else None)
        if path is None:
            git = self._ask("git", "Git repository", f"https://github.com/{repository}", something)
            return git, self._ask("rev", "Commit or tag", f"v{version}", something), ""
        if self.flags["git"] is not None or self.flags["rev"] is not None:
            msg = "a source is a directory or a repository: --path excludes --git and --rev"
            raise UsageError(msg)
        return "", "", something(path)

    def _against(self) -> tuple[str, ...]:
        """Return the torch releases that an extension is compiled against."""
        return words(self._ask("torch", "Torch releases", self._newest, release_list))

    def _libraries_of(self, version: str) -> str:
        """Return the torch release for library pins: that of the version, or none if unknown."""
        own = own_release(version)
        release = own if own in self.tables.releases else NO_RELEASE
        return one_of((*self.tables.releases, NO_RELEASE))(self.flags["torch"] or release)

    def _several(
        self, key: str, question: str, default: str, known: dict[Dimension, tuple[str, ...]]
    ) -> tuple[str, ...]:
        values = known[Dimension(key)]
        return words(
            self._ask(key, f"{question} ({', '.join(values)})", default, several_of(values))
        )

    def _ask(self, key: str, question: str, default: str, check: Callable[[str], str]) -> str:
        """Return the flag's value, else the answer at a terminal, else the default.

        The defaults for a checkout are what its files say, so nothing is asked.
        """
        given, is_terminal = self.flags[key], sys.stdin is not None and sys.stdin.isatty()
        if given is None and self.checkout is None and is_terminal:
            return str(click.prompt(question, default=default, value_proc=check, err=True))
        try:
            return check(default if given is None else given)
        except click.UsageError as error:
            msg = f"--{key}: {error.message}"
            raise UsageError(msg) from error


def _notes(found: Checkout, flags: Mapping[str, str | None]) -> Iterator[str]:
    """Yield where the answers for a checkout come from, unless flags gave them."""
    yield f"It is an extension, as {found.torch} says."
    for what, value in (("name", found.name), ("version", found.version)):
        if flags[what] is not None:
            continue
        why = f"is that of {value.file}" if value else "is a guess: correct it"
        yield f"The {what} {why}."
    if found.cuda:
        yield f"It has code for CUDA: {found.cuda}."
    if found.requires_python:
        asked = found.requires_python
        yield f"{asked.file} asks for Python {asked.text}."
    for module, file in found.undeclared:
        yield f"{file} imports {module}, which is not declared; `dependencies` adds requirements."


def words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def something(answer: str) -> str:
    if not answer.strip():
        msg = "an empty answer is not enough"
        raise click.UsageError(msg)
    return answer.strip()


def a_version(answer: str) -> str:
    if not VERSION.fullmatch(answer):
        msg = f"`{answer}` is not a public version"
        raise click.UsageError(msg)
    return answer


def release_list(answer: str) -> str:
    found = words(answer)
    something("".join(found))
    for word in found:
        if own_release(word) != word:
            msg = f"`{word}` is not a torch release, such as 2.15"
            raise click.UsageError(msg)
    return ",".join(found)


def one_of(known: Collection[str]) -> Callable[[str], str]:
    def check(answer: str) -> str:
        if answer not in known:
            msg = f"there is no `{answer}`; {did_you_mean(answer, known)}"
            raise click.UsageError(msg)
        return answer

    return check


def several_of(known: Collection[str]) -> Callable[[str], str]:
    def check(answer: str) -> str:
        found = words(answer)
        something("".join(found))
        for word in found:
            one_of(known)(word)
        if len(set(found)) < len(found):
            msg = "the same is named twice"
            raise click.UsageError(msg)
        return answer

    return check
