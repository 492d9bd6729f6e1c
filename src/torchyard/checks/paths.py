"""A rule about paths of the machine on which a package was built."""

import re
from collections.abc import Iterator
from functools import cache

from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.subject import Subject
from torchyard.checks.table import load_rule_table
from torchyard.model.matrix import any_match


@rule("leaked-path", Severity.WARNING, "a path that exists on the build machine only")
def leaked_path(subject: Subject) -> Iterator[Hit]:
    """A file that tools read, such as a CMake package, names a path of the build machine.

    Who compiles against the package gets an include directory that does not exist or, worse, one
    that somebody else could create. The package also differs from one build to the next. Which
    directories belong to build machines, and which files are looked at, is in `data/rules.toml`.

    Write paths relative to the file: `${CMAKE_CURRENT_LIST_DIR}` in CMake, `${pcfiledir}` in
    pkg-config.
    """
    globs, pattern = load_rule_table().build_texts, _pattern()
    for member, text in subject.contents.texts.items():
        if not any_match(member, globs):
            continue
        lines: dict[bytes, list[int]] = {}
        for found in pattern.finditer(text):
            lines.setdefault(found["path"], []).append(text.count(b"\n", 0, found.start()) + 1)
        for path, numbers in lines.items():
            more = f" and {len(numbers) - 1} more" if len(numbers) > 1 else ""
            what = f"line {numbers[0]}{more}: {path.decode(errors='replace')}"
            yield Hit(what, member, "write it relative to the file")


@cache
def _pattern() -> re.Pattern[bytes]:
    r"""Absolute paths below the roots, with `/` or `\` on Windows.

    What stands before must not make it relative to something else: `${PREFIX}/tmp`, `a/tmp`. Only
    flags such as `-I/tmp` are written without a gap.
    """
    roots = load_rule_table().build_roots
    unix = "|".join(re.escape(root) for root in roots if root.startswith("/"))
    windows = "|".join(re.escape(root[3:]) for root in roots if root.startswith("?:/"))
    path = rf"(?:{unix})/[^{_END}]+|[A-Za-z]:[\\/]+(?i:{windows})[\\/]+[^{_END}]+"
    return re.compile(rf"(?:(?<![\w.$}})\]>~*%@/\\-])|(?<=-[IL]))(?P<path>{path})".encode())


_END = r"""\s"'`;:,()<>\[\]|"""
