"""Rules about lists of files: RECORD of a wheel, and `info/paths.json` of a conda package."""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.subject import Subject
from torchyard.errors import BuildError
from torchyard.package.conda.index import PATHS, CondaPath, is_conda, parse_paths
from torchyard.package.contents import Contents, PackageFile, is_torn
from torchyard.package.wheel.dist_info import Recorded, parse_record
from torchyard.package.wheel.metadata import dist_info

_STRONG = frozenset(("sha256", "sha384", "sha512"))
_REWRITE = "write RECORD last, after all other files"


def _record(contents: Contents) -> tuple[list[Recorded], list[str]]:
    """Return the rows of a wheel's RECORD, and the problems of malformed ones."""
    return _parsed(contents.texts.get(f"{dist_info(contents)}/RECORD", b""))


@lru_cache(maxsize=1)
def _parsed(text: bytes) -> tuple[list[Recorded], list[str]]:
    """Parse RECORD, once for the three rules that need it: 13,000 rows take a while."""
    return parse_record(text.decode(errors="replace"))


def _listable(contents: Contents) -> dict[str, PackageFile]:
    """Return the files that RECORD must list: all but itself and its signatures."""
    record = f"{dist_info(contents)}/RECORD"
    exempt = {record, f"{record}.jws", f"{record}.p7s"}
    files = contents.files.items()
    return {name: file for name, file in files if name not in exempt and not name.endswith("/")}


@rule("record-missing", Severity.ERROR, "installers refuse a wheel without a list of its files")
def record_missing(subject: Subject) -> Iterator[Hit]:
    """RECORD, the list of a wheel's files, is missing or cannot be read.

    It is a file of comma-separated values in the folder `.dist-info`: a path, a digest such as
    `sha256=…`, and a size in each row. Without it installers refuse the wheel, or cannot uninstall
    it.

    Generate it with the tool that writes the wheel, never by hand.
    """
    contents = subject.contents
    folder = dist_info(contents)
    if not folder:
        return
    member = f"{folder}/RECORD"
    if member not in contents.files:
        yield Hit("the wheel has no RECORD", member, _REWRITE)
    elif member not in contents.texts:
        yield Hit("RECORD can't be read", member, _REWRITE)
    else:
        try:
            contents.texts[member].decode()
        except UnicodeDecodeError as error:
            yield Hit(f"RECORD is not UTF-8: {error.reason}", member, _REWRITE)
        for problem in _record(contents)[1]:
            yield Hit(problem, member, _REWRITE)


@rule("record-complete", Severity.ERROR, "unlisted files are installed, or listed ones are missing")
def record_complete(subject: Subject) -> Iterator[Hit]:
    """RECORD does not list exactly the files of the wheel.

    A file that is not listed is installed unchecked, and stays behind when the package is removed.
    A row without a file means that something was lost after RECORD had been written. Only RECORD
    itself and its signatures need no row.

    Write RECORD last, after all changes to files.
    """
    contents = subject.contents
    if f"{dist_info(contents)}/RECORD" not in contents.texts:
        return
    times = Counter(row.name for row in _record(contents)[0])
    for name in _listable(contents):
        if name not in times:
            yield Hit("the file is not in RECORD", name, _REWRITE)
    for name, number in times.items():
        if number > 1:
            yield Hit(f"RECORD lists the file {number} times", name, _REWRITE)
        if name not in contents.files and name != f"{dist_info(contents)}/RECORD":
            yield Hit("RECORD lists the file, which is missing", name, _REWRITE)


@rule("record-digest", Severity.ERROR, "a file is not the one that RECORD was written for")
def record_digest(subject: Subject) -> Iterator[Hit]:
    """A digest or a size in RECORD is not that of the file, or there is no strong digest.

    The file was changed after RECORD had been written, usually by a tool that rewrites libraries.
    Installers that verify digests refuse the wheel; others install an unverified file. Digests must
    be SHA-256 or better; SHA-384 and SHA-512 digests are accepted without being compared.

    Write RECORD last, after all changes to files.
    """
    contents = subject.contents
    files = _listable(contents)
    for row in _record(contents)[0]:
        file = files.get(row.name)
        if file is None:
            continue
        if row.size is not None and row.size != file.size:
            yield Hit(f"RECORD says {row.size:,} bytes, but the file has {file.size:,}", row.name)
        if not row.algorithm:
            yield Hit("RECORD has no digest of the file", row.name, _REWRITE)
        elif row.algorithm not in _STRONG:
            what = f"RECORD has a digest of a weak or unknown kind: {row.algorithm}"
            yield Hit(what, row.name, "use sha256")
        elif row.algorithm == "sha256" and file.digest and row.digest != file.digest:
            yield Hit("the file's SHA-256 is not the one in RECORD", row.name, _REWRITE)


@rule("conda-paths", Severity.ERROR, "installed files would not be those that were listed")
def conda_paths(subject: Subject) -> Iterator[Hit]:
    """`info/paths.json` does not match the files of a conda package.

    Installers create the files that it lists, and verify them by digest and size. A file that is
    missing from it is not installed; one that differs stops the installation. A list that is not
    sorted is a warning: two builds of the same files would differ. A truncated archive is reported
    by `archive-structure` only.

    Build the package again, and change no file afterwards.
    """
    contents = subject.contents
    if not is_conda(contents) or is_torn(contents):
        return
    if PATHS not in contents.texts:
        yield Hit("the package has no list of its files", PATHS)
        return
    try:
        rows = parse_paths(contents.texts[PATHS])
    except BuildError as error:
        yield Hit(str(error), PATHS)
        return
    installed = {
        name: file
        for name, file in contents.files.items()
        if not name.startswith("info/") and not name.endswith("/")
    }
    paths = [row.path for row in rows]
    if paths not in (sorted(paths), sorted(paths, key=lambda path: path.split("/"))):
        yield Hit("the list is not sorted", PATHS, "write it sorted", is_mild=True)
    times = Counter(paths)
    yield from (Hit("the file is not listed", name) for name in installed if name not in times)
    yield from (Hit(f"listed {n} times", name) for name, n in times.items() if n > 1)
    for row in rows:
        yield from _compare(row, installed.get(row.path))


def _compare(row: CondaPath, file: PackageFile | None) -> Iterator[Hit]:
    if row.path_type == "directory":
        return
    if file is None:
        yield Hit("the file is listed, but missing", row.path)
        return
    if bool(file.link) != (row.path_type == "softlink"):
        is_one, recorded = ("a link", "none") if file.link else ("no link", "one")
        yield Hit(f"the file is {is_one}, but listed as {recorded}", row.path)
    if file.link or row.path_type == "softlink":
        return
    if row.size_in_bytes is not None and row.size_in_bytes != file.size:
        what = f"listed with {row.size_in_bytes:,} bytes, but has {file.size:,}"
        yield Hit(what, row.path)
    if row.sha256 is None:
        yield Hit("listed without a SHA-256", row.path)
    elif file.digest and row.sha256 != file.digest:
        yield Hit("the file's SHA-256 is not the one that is listed", row.path)
