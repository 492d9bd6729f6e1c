"""Rules about paths of the machine on which a package was built."""

import re
from collections.abc import Iterator
from functools import cache

from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.subject import Subject
from torchyard.checks.table import load_rule_table
from torchyard.model.matrix import any_match
from torchyard.package.conda.index import prefix_placeholders

_END = r"""\s"'`;:,()<>\[\]|"""
_RELATIVE = re.compile(rb"[\w.$})\]>~*%@/\\-]")
_DRIVE = re.compile(rb"\W?[A-Za-z]:")
_FLAGS = frozenset((b"-I", b"-L"))


@rule("leaked-path", Severity.WARNING, "a path that exists on the build machine only")
def leaked_path(subject: Subject) -> Iterator[Hit]:
    """A file that tools read, such as a CMake package, names a path of the build machine.

    Compiling against the package then uses an include directory that does not exist or, worse, one
    that another user could create. The package also differs from one build to the next.
    `data/rules.toml` lists the directories of build machines and the files that are searched.

    Write paths relative to the file: `${CMAKE_CURRENT_LIST_DIR}` in CMake, `${pcfiledir}` in
    pkg-config.
    """
    for member, lines in _leaks(subject, load_rule_table().build_texts):
        for path, numbers in lines.items():
            more = f" and {len(numbers) - 1} more" if len(numbers) > 1 else ""
            what = f"line {numbers[0]}{more}: {path}"
            yield Hit(what, member, "write it relative to the file")


@rule("leaked-config", Severity.NOTE, "it discloses where the package was built")
def leaked_config(subject: Subject) -> Iterator[Hit]:
    """A file that records how the package was built names paths of the build machine.

    `numpy.show_config()` prints such a file, and nothing reads the paths in it. They do no harm,
    but the package differs from one build to the next, and discloses the names of users and
    folders.

    Leave the paths out if the build should be reproducible.
    """
    for member, lines in _leaks(subject, load_rule_table().config_texts):
        path, numbers = next(iter(lines.items()))
        more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
        yield Hit(f"line {numbers[0]}: {path}{more}", member)


def _leaks(subject: Subject, globs: tuple[str, ...]) -> Iterator[tuple[str, dict[str, list[int]]]]:
    """Yield the texts with paths of build machines, and the line numbers of each path.

    Conda's installers replace some.
    """
    replaced = prefix_placeholders(subject.contents)
    for member, text in subject.contents.texts.items():
        lines: dict[str, list[int]] = {}
        prefix = replaced[member].prefix_placeholder if member in replaced else None
        kept = text.replace(prefix.encode(), b"$PREFIX") if prefix else text
        for path, line in _paths(kept) if any_match(member, globs) else ():
            lines.setdefault(path.decode(errors="replace"), []).append(line)
        if lines:
            yield member, lines


def _paths(text: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield absolute paths below the roots, and the numbers of their lines.

    The text before a match must not make it relative to something else (`${PREFIX}/tmp`,
    `a/tmp`), nor be a drive letter. Only flags such as `-I/tmp` may directly precede it.
    """
    for pattern in _patterns():
        line, seen = 1, 0
        for found in pattern.finditer(text):
            start = found.start()
            line, seen = line + text.count(b"\n", seen, start), start
            before = text[max(0, start - 3) : start]
            is_flag = before[-2:] in _FLAGS
            if is_flag or not (_RELATIVE.fullmatch(before[-1:]) or _DRIVE.fullmatch(before)):
                yield found[0], line


@cache
def _patterns() -> tuple[re.Pattern[bytes], ...]:
    """Return a pattern for Unix and one for Windows, which are faster than one for both."""
    roots = load_rule_table().build_roots
    unix = "|".join(re.escape(root[1:]) for root in roots if root.startswith("/"))
    windows = "|".join(re.escape(root[3:]) for root in roots if root.startswith("?:/"))
    return (
        re.compile(rf"/(?:{unix})/[^{_END}]+".encode()),
        re.compile(rf"[A-Za-z]:[\\/]+(?:{windows})[\\/]+[^{_END}]+".encode(), re.IGNORECASE),
    )
