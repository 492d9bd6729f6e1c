"""A rule about paths of the machine on which a package was built."""

import re
from collections.abc import Iterator
from functools import cache

from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.subject import Subject
from torchyard.checks.table import load_rule_table
from torchyard.model.matrix import any_match

_END = r"""\s"'`;:,()<>\[\]|"""
_RELATIVE = re.compile(rb"[\w.$})\]>~*%@/\\-]")
_DRIVE = re.compile(rb"\W?[A-Za-z]:")
_FLAGS = frozenset((b"-I", b"-L"))


@rule("leaked-path", Severity.WARNING, "a path that exists on the build machine only")
def leaked_path(subject: Subject) -> Iterator[Hit]:
    """A file that tools read, such as a CMake package, names a path of the build machine.

    Who compiles against the package gets an include directory that does not exist or, worse, one
    that somebody else could create. The package also differs from one build to the next. Which
    directories belong to build machines, and which files are looked at, is in `data/rules.toml`.

    Write paths relative to the file: `${CMAKE_CURRENT_LIST_DIR}` in CMake, `${pcfiledir}` in
    pkg-config.
    """
    for member, lines in _leaks(subject, load_rule_table().build_texts):
        for path, numbers in lines.items():
            more = f" and {len(numbers) - 1} more" if len(numbers) > 1 else ""
            what = f"line {numbers[0]}{more}: {path}"
            yield Hit(what, member, "write it relative to the file")


@rule("leaked-config", Severity.NOTE, "it tells where the package was built")
def leaked_config(subject: Subject) -> Iterator[Hit]:
    """A file that tells how the package was built names paths of the build machine.

    `numpy.show_config()` prints such a file, and nothing reads the paths in it: they do no harm,
    but the package differs from one build to the next, and tells the names of users and folders.

    Leave the paths out, if somebody should be able to build the same package again.
    """
    for member, lines in _leaks(subject, load_rule_table().config_texts):
        path, numbers = next(iter(lines.items()))
        more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
        yield Hit(f"line {numbers[0]}: {path}{more}", member)


def _leaks(subject: Subject, globs: tuple[str, ...]) -> Iterator[tuple[str, dict[str, list[int]]]]:
    """The texts that have paths of build machines, and the lines of each path."""
    for member, text in subject.contents.texts.items():
        lines: dict[str, list[int]] = {}
        for path, line in _paths(text) if any_match(member, globs) else ():
            lines.setdefault(path.decode(errors="replace"), []).append(line)
        if lines:
            yield member, lines


def _paths(text: bytes) -> Iterator[tuple[bytes, int]]:
    """Absolute paths below the roots, and the lines they are in.

    What stands before must not make it relative to something else: `${PREFIX}/tmp`, `a/tmp`, nor
    be the letter of a drive. Only flags such as `-I/tmp` are written without a gap.
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
    """One for each way to begin, which is quicker by far."""
    roots = load_rule_table().build_roots
    unix = "|".join(re.escape(root[1:]) for root in roots if root.startswith("/"))
    windows = "|".join(re.escape(root[3:]) for root in roots if root.startswith("?:/"))
    return (
        re.compile(rf"/(?:{unix})/[^{_END}]+".encode()),
        re.compile(rf"[A-Za-z]:[\\/]+(?:{windows})[\\/]+[^{_END}]+".encode(), re.IGNORECASE),
    )
