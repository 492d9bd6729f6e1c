"""The `.dist-info` folder of an unpacked wheel, and RECORD."""

import csv
from base64 import urlsafe_b64encode
from binascii import a2b_base64
from collections.abc import Callable, Iterable
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from torchyard.errors import BuildError
from torchyard.package.zip.writer import Written

_COLUMNS = 3
_DIGITS = 19
"""Maximum digits of a file size; parsing longer numbers would waste time."""


_MOST_ROWS = 1 << 18
_MOST_PROBLEMS = 100


class Recorded(NamedTuple):
    """A row of RECORD. The digest is hexadecimal; without one, the algorithm is empty."""

    name: str
    algorithm: str
    digest: str
    size: int | None


def find_dist_info(image: Path) -> Path:
    """Return the `.dist-info` folder of an unpacked wheel."""
    found = sorted(image.glob("*.dist-info"))
    if len(found) != 1:
        names = ", ".join(f"`{folder.name}`" for folder in found) or "none"
        msg = f"`{image}` should have one folder *.dist-info, but has {names}"
        raise BuildError(msg, hint="unpack only the wheel of the project's backend there")
    return found[0]


def record(files: Iterable[Written], own_name: str) -> str:
    """Return the text of RECORD, which lists itself last; files without a digest have no size."""
    text = StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerows(map(_row, files))
    rows.writerow((own_name, "", ""))
    return text.getvalue()


def parse_record(text: str) -> tuple[list[Recorded], list[str]]:
    """Return the rows of RECORD, and the problems of malformed ones."""
    rows: list[Recorded] = []
    problems: list[str] = []
    lines = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        for line in lines:
            try:
                rows.append(_recorded(line))
            except ValueError as error:
                problems.append(f"line {lines.line_num} of RECORD is malformed: {error}")
            if len(rows) == _MOST_ROWS or len(problems) == _MOST_PROBLEMS:
                problems.append(f"RECORD is not read after line {lines.line_num}")
                break
    except csv.Error as error:
        problems.append(f"RECORD can't be read after line {lines.line_num}: {error}")
    return rows, problems


def _recorded(line: list[str]) -> Recorded:
    if len(line) != _COLUMNS:
        msg = f"it has {len(line)} columns, not {_COLUMNS}"
        raise ValueError(msg)
    name, digest, size = line
    if not name:
        msg = "it has no file name"
        raise ValueError(msg)
    if size and not (size.isascii() and size.isdecimal() and len(size) < _DIGITS):
        msg = f"`{size}` is not a size"
        raise ValueError(msg)
    algorithm, equals, value = digest.partition("=")
    if digest and not (equals and algorithm and value):
        msg = f"`{digest}` is not a digest"
        raise ValueError(msg)
    padded = value.replace("-", "+").replace("_", "/") + "=" * (-len(value) % 4)
    decoded = a2b_base64(padded, strict_mode=True).hex()
    return Recorded(name, algorithm.lower(), decoded, int(size) if size else None)


def updated_record(
    text: str, files: Iterable[Written], own_name: str, renamed: Callable[[str], str | None]
) -> str:
    """Return RECORD with new rows for rewritten files; `renamed` returns None for removed ones.

    All other rows stay unchanged. RECORD lists itself last.
    """
    written = {file.name: file for file in files}
    left = dict(written)
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        name = _name(line)
        new = renamed(name)
        if new is None or new == own_name or not line:
            continue
        if new in written:
            if new in left:  # else the row is a duplicate
                lines.append(_line(*_row(left.pop(new))))
        elif new != name:
            lines.append(_line(new, *_columns(line)[1:]))
        else:
            lines.append(f"{line}\n")
    lines += [_line(*_row(file)) for file in left.values()]
    return "".join((*lines, _line(own_name, "", "")))


def _name(line: str) -> str:
    """Return the name in a row; the fast path is for unquoted ones."""
    return _columns(line)[0] if line.startswith('"') else line.partition(",")[0]


def _columns(line: str) -> list[str]:
    try:
        return next(csv.reader([line]))
    except csv.Error as error:
        msg = f"RECORD has a malformed line: {line[:80]!r}: {error}"
        raise BuildError(msg, hint="build the wheel again: installers refuse it") from error


def _line(*columns: str) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerow(columns)
    return text.getvalue()


def _row(file: Written) -> tuple[str, str, str]:
    digest = urlsafe_b64encode(file.digest).rstrip(b"=").decode()
    return (file.name, f"sha256={digest}", str(file.size)) if digest else (file.name, "", "")
