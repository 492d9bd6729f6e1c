"""Facts from CMake code: options, environment variables, downloads, packages."""

import re
from collections.abc import Iterator
from itertools import islice

from torchyard.toolchain.reading.source_text import (
    CodeReading,
    Download,
    DownloadKind,
    SourceLine,
    Switch,
    line_at,
    reading_table,
)

_BLOCK = re.compile(r"#\[(=*)\[")
"""The start of a bracket comment: `#[[ … ]]`, `#[=[ … ]=]`."""
_COMMAND = re.compile(r"^[ \t]*(\w+)[ \t]*\(", re.MULTILINE)
_ARGUMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|#[^\n]*|([()])|([^\s()#"]+)')
_MOST = 300
_LONGEST = 1000
_ENVIRONMENT = re.compile(r"^[^#\n]*?\bENV\{(\w+)\}", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class CMakeCommand(SourceLine, kw_only=True):
    """A command; its name is in lower case."""

    arguments: tuple[str, ...]

    def after(self, *keys: str) -> str:
        """Return the argument after the first of these keywords in the command."""
        for key in keys:
            if key in self.arguments[:-1]:
                return self.arguments[self.arguments.index(key) + 1]
        return ""


def read_cmake(file: str, text: str) -> CodeReading:
    """Return the facts in the text of a file."""
    text = _without_blocks(text)
    found = islice(_ENVIRONMENT.finditer(text), _MOST)
    switches = [Switch(match[1], file, line_at(text, match.start(1))) for match in found]
    torch = cuda = None
    downloads: list[Download] = []
    for command in _resolved(list(_commands(file, text))):
        name, words = command.text, command.arguments
        if name == "option" and words:
            default = "".join(words[2:3]) or "OFF"
            switches.append(Switch(words[0], file, command.line, default=default, is_cmake=True))
        elif name == "find_package" and words[:1] == ("Torch",):
            version = words[1] if words[1:] and words[1][:1].isdigit() else ""
            torch = torch or SourceLine(version, file, command.line)
        elif name in {"project", "enable_language"} and "CUDA" in words:
            cuda = cuda or SourceLine(name, file, command.line)
        else:
            downloads += _downloads(command)
    return CodeReading(
        file=file,
        switches=tuple(switches),
        downloads=tuple(downloads),
        torch=torch,
        cuda=cuda,
    )


def _without_blocks(text: str) -> str:
    """Return a text with bracket comments emptied."""
    parts, end = list[str](), 0
    while match := _BLOCK.search(text, end):
        close = f"]{match[1]}]"
        if (at := text.find(close, match.end())) < 0:
            break
        parts += (text[end : match.start()], "\n" * text.count("\n", match.end(), at))
        end = at + len(close)
    return "".join((*parts, text[end:]))


def _commands(file: str, text: str) -> Iterator[CMakeCommand]:
    """Yield the commands at the beginning of lines, in one pass."""
    line, last, end = 1, 0, 0
    while match := _COMMAND.search(text, end):
        line, last = line + text.count("\n", last, match.start(1)), match.start(1)
        words: list[str] = []
        depth, end = 0, match.end()
        for found in islice(_ARGUMENT.finditer(text, end), _MOST):
            depth, end = depth + {"(": 1, ")": -1}.get(found[2], 0), found.end()
            if depth < 0:
                break
            if found[1] is not None or found[3]:
                words.append(found[3] or found[1])
        yield CMakeCommand(match[1].lower(), file, line, arguments=tuple(words))


def _resolved(commands: list[CMakeCommand]) -> Iterator[CMakeCommand]:
    """Yield commands with the values of variables that are always set to the same."""
    sets: dict[str, set[str]] = {}
    for command in commands:
        if command.text == "set" and command.arguments:
            sets.setdefault(command.arguments[0], set()).add("".join(command.arguments[1:2]))
    values = {name: min(texts) for name, texts in sets.items() if len(texts) == 1}

    def resolve(text: str) -> str:
        for _ in range(3):
            text = _VARIABLE.sub(lambda match: values.get(match[1], match[0]), text)[:_LONGEST]
        return text

    for command in commands:
        words = tuple(map(resolve, command.arguments))
        yield CMakeCommand(command.text, command.file, command.line, arguments=words)


def _downloads(command: CMakeCommand) -> Iterator[Download]:
    """Yield the downloads of a command: an archive by `URL`, a repository, or a file."""
    words, kind = command.arguments, reading_table().cmake_downloads.get(command.text)
    name, url = command.after("NAME") or "".join(words[:1]), command.after("URL", "GIT_REPOSITORY")
    if command.text == "file" and name == "DOWNLOAD":
        kind, url = DownloadKind.CMAKE_FILE, "".join(words[1:2])
        name = url.rpartition("/")[2]
    if owner := command.after("GITHUB_REPOSITORY"):
        url = f"https://github.com/{owner}"
    if kind is not None and url:
        revision = "" if command.after("URL") else command.after("GIT_TAG", "VERSION")
        digest, at = command.after("URL_HASH", "EXPECTED_HASH"), (command.file, command.line)
        yield Download(name, *at, kind=kind, url=url, revision=revision, digest=digest)
