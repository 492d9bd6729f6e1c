"""Finds the static archives that were linked into libraries, as the linker finds them."""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.insight.ninja_file import Edge

LINKS = "links.jsonl"
"""The file of link commands that are in no build.ninja: lines with a directory, and words."""

_STATIC = frozenset(("-Bstatic", "-dn", "-non_shared", "-static"))
_DYNAMIC = frozenset(("-Bdynamic", "-dy", "-call_shared"))
_RUNTIME = re.compile(r"-static-lib(\S+)")
"""Options by which a compiler links its own libraries statically: `-static-libstdc++`."""
_FILE = re.compile(r"\.(?:a|so(?:\.\d+)*)$")
_SPACED = re.compile(r"(?<!\S)(-[Ll]|-Xlinker)\s+")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_BINARY = (b"!<arch>", b"!<thin>", b"\x7fELF")
_EMPTY = b"!<arch>\n"
"""An archive without members, as glibc has for libraries that are now part of libc."""
_SCRIPT = 64 << 10
"""The most bytes of a linker script; distributions' have a few hundred."""


class StaticLinks(NamedTuple):
    """The archives in libraries, with the names of the libraries, and all names of linked files."""

    archives: dict[Path, set[str]]
    linked: frozenset[str]


def static_links(
    edges: Iterable[Edge], here: Path, names: Collection[str], folders: Sequence[Path]
) -> StaticLinks:
    """Return the archives that a build's commands link into the libraries with some names.

    Relative paths begin in `here`; `folders` are the compiler's own.
    """
    archives: dict[Path, set[str]] = {}
    linked: set[str] = set()
    for edge in edges:
        made = {output.rpartition("/")[2] for output in edge.outputs}
        if not edge.is_phony:
            linked |= made
        for name in made.intersection(names) if edge.link else ():
            for path in LinkLine(here, folders, edge.link, edge.inputs).archives():
                archives.setdefault(path, set()).add(name)
    return StaticLinks(archives, frozenset(linked))


def noted_links(file: Path) -> Iterator[tuple[list[Edge], Path]]:
    """Yield the noted link commands, each with its directory."""
    for line in file.read_bytes().splitlines() if file.is_file() else ():
        here, words = msgspec.json.decode(line, type=tuple[str, list[str]])
        outputs = tuple(name for option, name in pairwise(words) if option == "-o")
        yield [Edge(outputs, LINKS, (), link=shlex.join(words))], Path(here)


class LinkLine:
    """A link command: its words as a shell reads them, and files besides."""

    def __init__(
        self, here: Path, folders: Sequence[Path], link: str, files: Iterable[str] = ()
    ) -> None:
        self._here = here
        self._words = [*files]
        for word in _shell_words(_SPACED.sub(r"\1", link)):
            bare = word.removeprefix("-Xlinker")
            self._words += bare[4:].split(",") if bare.startswith("-Wl,") else [bare]
        own = (word[2:] for word in self._words if word.startswith("-L"))
        self._folders = [*(here / folder for folder in own), *folders]
        self._scripts: set[Path] = set()

    def archives(self) -> Iterator[Path]:
        """Yield the archives that the linker takes, in the order of the command."""
        return self._of_words(self._words)

    def _of_words(self, words: Iterable[str]) -> Iterator[Path]:
        is_static = False
        for word in words:
            if word in _STATIC or word in _DYNAMIC:
                is_static = word in _STATIC
            elif runtime := _RUNTIME.fullmatch(word):
                yield from self._of_library(runtime[1], is_static=True)
            elif word.startswith("-l"):
                yield from self._of_library(word[2:], is_static=is_static)
            elif _FILE.search(word):
                yield from self._of_file(self._here / word)

    def _of_library(self, name: str, *, is_static: bool) -> Iterator[Path]:
        """Yield the archives of `-lNAME`: in each folder, a shared library comes first."""
        names = [f"lib{name}.a"] if is_static else [f"lib{name}.so", f"lib{name}.a"]
        names = [name[1:]] if name.startswith(":") else names
        files = (folder / one for folder in self._folders for one in names)
        if found := next((path for path in files if path.is_file()), None):
            yield from self._of_file(found)

    def _of_file(self, path: Path) -> Iterator[Path]:
        """Yield an archive, or those that a linker script in its place names.

        A file that was removed since is what its name says.
        """
        if path in self._scripts:
            return
        if not path.is_file():
            yield from [path] if path.suffix == ".a" else []
            return
        with path.open("rb") as file:
            content = file.read(_SCRIPT)
        if not content.startswith(_BINARY):
            self._scripts.add(path)
            text = _COMMENT.sub(" ", content.decode(errors="replace"))
            yield from self._of_words(re.findall(r"[^\s(),;]+", text))
        elif not content.startswith(b"\x7fELF") and content != _EMPTY:
            yield path


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # quotes that are not closed
        return text.split()
