"""Rules about the archive: its integrity, and files that do not belong in it."""

from collections import defaultdict
from collections.abc import Iterator

from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.subject import Subject
from torchyard.checks.table import load_rule_table
from torchyard.model.quantity import parse_size, show_size
from torchyard.package.contents import FaultKind, PackageFile
from torchyard.package.formats import site_path
from torchyard.package.versions import package_folder
from torchyard.package.wheel.metadata import about_text, is_wheel

_LARGEST = 5
_MODULES = (".py", ".pyi", ".pyd", ".so")
_ABOUT = (".dist-info", ".data", ".libs")


@rule(
    "archive-structure",
    Severity.ERROR,
    "two programs could read the archive in two ways, or not at all",
)
def archive_structure(subject: Subject) -> Iterator[Hit]:
    """The archive is cut off, or contradicts itself.

    A zip has most data twice: in front of each member, and in a directory at its end. Where the
    two differ, or the archive has bytes that neither describes, one program may install something
    other than what another has checked. Package indexes refuse such files.

    Download the package again. If it is the same, write it again with an ordinary zip writer.
    """
    return _faults(subject, FaultKind.STRUCTURE)


@rule("archive-names", Severity.ERROR, "unpacking would overwrite files, here or elsewhere")
def archive_names(subject: Subject) -> Iterator[Hit]:
    """A member would be written over another one, or outside of where the package is unpacked.

    Duplicate names, absolute paths and `..` let a package replace files that it does not own. On
    case-insensitive file systems, so do names that differ only in case.

    Find out which tool added the member, and give it a plain relative name of its own.
    """
    return _faults(subject, FaultKind.NAME)


@rule("archive-bomb", Severity.ERROR, "unpacking would fill the disk")
def archive_bomb(subject: Subject) -> Iterator[Hit]:
    """The archive unpacks to far more than its size allows, or to more than it declares.

    Unpacking such a file fills the disk or the memory. Real libraries and headers shrink to a third
    or a tenth, not to a thousandth.

    Do not unpack it, and do not publish it. If it is yours, find the member that is all zeros.
    """
    return _faults(subject, FaultKind.BOMB)


@rule("archive-content", Severity.ERROR, "a file is not what was packed")
def archive_content(subject: Subject) -> Iterator[Hit]:
    """A member's unpacked content does not have the checksum or the size that the archive records.

    The package was damaged in transfer, or changed by a tool that did not update the checksums.
    Installers stop half-way, or install the damaged file.

    Download the package again, or build it again.
    """
    return _faults(subject, FaultKind.CONTENT)


@rule("archive-binary", Severity.ERROR, "a library that no loader can read")
def archive_binary(subject: Subject) -> Iterator[Hit]:
    """A member begins like a program or a library, but cannot be parsed as one.

    Loaders refuse it when it is first needed, which may be long after the installation. Common
    causes are a full disk during the build, and tools that rewrite libraries.

    Build the library again, and check the steps that change it after linking.
    """
    return _faults(subject, FaultKind.BINARY)


def _faults(subject: Subject, kind: FaultKind) -> Iterator[Hit]:
    return (
        Hit(fault.what, fault.member) for fault in subject.contents.faults if fault.kind is kind
    )


@rule("top-level", Severity.WARNING, "the file lands in site-packages itself, among all packages")
def top_level(subject: Subject) -> Iterator[Hit]:
    """A wheel has files or folders at its root that are not its own packages.

    Everything at the root of a wheel is installed into site-packages. A folder `tests` or a file
    `LICENSE` there collides with those of other projects: the next wheel overwrites it,
    uninstalling one package removes files of another, and `import tests` may find another
    project's.

    Move the files into the package, or exclude them in the build backend's settings.
    """
    if not is_wheel(subject.contents):
        return
    table = load_rule_table()
    package = package_folder(subject.expected.name).lower()
    listed = (about_text(subject.contents, "top_level.txt") or b"").decode(errors="replace").split()
    importable: dict[str, bool] = {}
    for member in subject.contents.files:
        top, slash, rest = member.partition("/")
        if slash:
            is_module = rest.endswith(_MODULES) or subject.contents.files[member].binary is not None
            importable[top] = importable.get(top, False) or is_module
        elif not top.endswith((*_MODULES, ".pth")) or (
            top in table.stray_files and top.partition(".")[0] != package
        ):
            yield Hit("a file at the root of the wheel is not a module", member, _MOVE)
    for top, is_importable in sorted(importable.items()):
        if top.endswith(_ABOUT) or top.lower() == package:
            continue
        if top in table.stray_folders:
            yield Hit(f"the folder `{top}` is not specific to this project", f"{top}/", _MOVE)
        elif not is_importable and top not in listed:
            yield Hit(f"the folder `{top}` has nothing to import", f"{top}/", _MOVE)


_MOVE = "move it into the package, or leave it out of the wheel"


@rule("pth-file", Severity.WARNING, "it runs code whenever any Python starts", own=Severity.ERROR)
def pth_file(subject: Subject) -> Iterator[Hit]:
    """The package installs a `.pth` file into site-packages.

    Every Python process reads these files at startup and executes each line that begins with
    `import`. That slows down every start, breaks every program if a line fails, and is a known way
    to hide malicious code. A `.pth` file inside a package, such as one with model weights, is not
    read at startup and not reported.

    Run this code when the package is imported instead. If there is no other way, allow it in the
    policy.
    """
    for member in filter(lambda name: name.endswith(".pth"), subject.contents.files):
        path = site_path(subject.contents, member)
        if path is not None and "/" not in path:
            yield Hit("this file is run by every Python that starts", member)


@rule("duplicate-file", Severity.WARNING, "users download and store the same bytes twice")
def duplicate_file(subject: Subject) -> Iterator[Hit]:
    """Two large files of the package are the same, byte for byte.

    Wheels cannot contain links: a link in the build directory becomes a copy in the wheel, such as
    `protoc` and `protoc-3.21.12.0`. A library with two copies may also be loaded twice.

    Leave out the copy that is not used. `data/rules.toml` sets the minimum size of files to
    compare.
    """
    least = parse_size(load_rule_table().duplicate_least)
    same: defaultdict[str, list[PackageFile]] = defaultdict(list)
    for file in subject.contents.files.values():
        if file.size >= least and file.digest:
            same[file.digest].append(file)
    for files in same.values():
        first, *copies = sorted(files, key=lambda file: file.name)
        for copy in copies:
            yield Hit(f"these {show_size(copy.size)} are also in {first.name}", copy.name)


@rule("size-budget", Severity.ERROR, "the package is larger than it may be")
def size_budget(subject: Subject) -> Iterator[Hit]:
    """The package is larger than the budget of the policy.

    Indexes limit the size of files, and large packages cost users disk space and download time.
    Packages usually grow unnoticed, by an architecture or a static library added by mistake.

    Look at the largest members, and compare them with those of the last release: `torchyard diff`.
    Then remove files, or raise `budget` in the policy.
    """
    contents, budget = subject.contents, subject.policy.budget
    if not budget or contents.size <= parse_size(budget):
        return
    files = contents.files.values()
    largest = sorted(files, key=lambda file: (file.stored or file.size, file.name))[-_LARGEST:]
    names = ", ".join(
        f"{file.name} ({show_size(file.stored or file.size)})" for file in reversed(largest)
    )
    what = f"the package has {show_size(contents.size)}, more than its budget of {budget}"
    yield Hit(what, hint=f"the largest members: {names}")
