"""Rules about the archive: whether it can be trusted, and what should not be in it."""

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

    A zip says most things twice: in front of each member, and in a directory at its end. Where the
    two differ, or bytes lie where neither says, one program installs something else than another
    one has checked. Package indexes refuse such files.

    Download the package again. If it is the same, write it anew with an ordinary zip writer.
    """
    return _faults(subject, FaultKind.STRUCTURE)


@rule("archive-names", Severity.ERROR, "unpacking would overwrite files, here or elsewhere")
def archive_names(subject: Subject) -> Iterator[Hit]:
    """A member would be written over another one, or outside of where the package is unpacked.

    Names that are there twice, absolute paths and `..` let a package replace what it does not own.
    On systems where `A` and `a` are one file, so do names that differ in nothing else.

    Find out which tool added the member, and give it a plain relative name of its own.
    """
    return _faults(subject, FaultKind.NAME)


@rule("archive-bomb", Severity.ERROR, "unpacking would fill the disk")
def archive_bomb(subject: Subject) -> Iterator[Hit]:
    """Far more comes out of the archive than went in, or more than it said.

    Such a file fills the disk or the memory of whoever unpacks it. Real libraries and headers
    shrink to a third or a tenth, not to a thousandth.

    Do not unpack it, and do not publish it. If it is yours, find the member that is all zeros.
    """
    return _faults(subject, FaultKind.BOMB)


@rule("archive-content", Severity.ERROR, "a file is not what was packed")
def archive_content(subject: Subject) -> Iterator[Hit]:
    """What comes out of a member is not what was put in: its checksum or its size is another.

    The package was damaged on its way, or changed by somebody who did not know about checksums.
    Installers stop half-way, or install the damaged file.

    Download the package again, or build it again.
    """
    return _faults(subject, FaultKind.CONTENT)


@rule("archive-binary", Severity.ERROR, "a library that no loader can read")
def archive_binary(subject: Subject) -> Iterator[Hit]:
    """A member begins like a program or a library, and is none.

    Loaders refuse it when it is first needed, which may be long after it was installed. Mostly a
    build ran out of disk, or a tool that rewrites libraries broke one.

    Build the library again, and look at what was done to it after it was linked.
    """
    return _faults(subject, FaultKind.BINARY)


def _faults(subject: Subject, kind: FaultKind) -> Iterator[Hit]:
    return (
        Hit(fault.what, fault.member) for fault in subject.contents.faults if fault.kind is kind
    )


@rule("top-level", Severity.WARNING, "the file lands in site-packages itself, among all packages")
def top_level(subject: Subject) -> Iterator[Hit]:
    """A wheel has files or folders at its root that are not its own packages.

    All that is at the root of a wheel is installed into site-packages. A folder `tests` or a file
    `LICENSE` there belongs to every project and to none: the next wheel overwrites it, removing one
    package removes the other's files, and `import tests` finds a stranger's.

    Move the files into the package, or tell the build backend to leave them out.
    """
    if not is_wheel(subject.contents):
        return
    table = load_rule_table()
    own = package_folder(subject.expected.name).lower()
    listed = (about_text(subject.contents, "top_level.txt") or b"").decode(errors="replace").split()
    importable: dict[str, bool] = {}
    for member in subject.contents.files:
        top, slash, rest = member.partition("/")
        if slash:
            is_module = rest.endswith(_MODULES) or subject.contents.files[member].binary is not None
            importable[top] = importable.get(top, False) or is_module
        elif not top.endswith((*_MODULES, ".pth")) or (
            top in table.stray_files and top.partition(".")[0] != own
        ):
            yield Hit("a file at the root of the wheel is no module", member, _MOVE)
    for top, is_importable in sorted(importable.items()):
        if top.endswith(_ABOUT) or top.lower() == own:
            continue
        if top in table.stray_folders:
            yield Hit(f"the folder `{top}` is nobody's in particular", f"{top}/", _MOVE)
        elif not is_importable and top not in listed:
            yield Hit(f"the folder `{top}` has nothing to import", f"{top}/", _MOVE)


_MOVE = "move it into the package, or leave it out of the wheel"


@rule("pth-file", Severity.WARNING, "it runs code whenever any Python starts", own=Severity.ERROR)
def pth_file(subject: Subject) -> Iterator[Hit]:
    """The package installs a `.pth` file into site-packages.

    Python reads these when it starts, whatever program it starts for, and runs each line that
    begins with `import`. It slows down all of them, breaks all of them if it fails, and is a known
    way to hide what should not be there. A `.pth` inside a package, such as a file with weights, is
    not read, and not meant here.

    Do what it does when the package is imported. If there is no other way, allow it in the policy.
    """
    for member in filter(lambda name: name.endswith(".pth"), subject.contents.files):
        path = site_path(subject.contents, member)
        if path is not None and "/" not in path:
            yield Hit("this file is run by every Python that starts", member)


@rule("duplicate-file", Severity.WARNING, "everybody downloads and stores the same bytes twice")
def duplicate_file(subject: Subject) -> Iterator[Hit]:
    """Two large files of the package are the same, byte for byte.

    Wheels can't hold links: what is a link in the build directory becomes a copy in the wheel, such
    as `protoc` and `protoc-3.21.12.0`. Libraries that are there twice may also be loaded twice.

    Leave out the copy that nobody asks for. The least size of files that count is in
    `data/rules.toml`.
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

    Indexes have limits, and so have the disks and the patience of those who install it. A package
    mostly grows unseen, by an architecture or a static library that nobody meant to add.

    Look at the largest members, and compare them with those of the last release: `torchyard diff`.
    Then remove something, or raise `budget` in the policy on purpose.
    """
    contents, budget = subject.contents, subject.policy.budget
    if not budget or contents.size <= parse_size(budget):
        return
    files = contents.files.values()
    largest = sorted(files, key=lambda file: (file.stored or file.size, file.name))[-_LARGEST:]
    names = ", ".join(
        f"{file.name} ({show_size(file.stored or file.size)})" for file in reversed(largest)
    )
    what = f"the package has {show_size(contents.size)}, and its budget is {budget}"
    yield Hit(what, hint=f"the largest members: {names}")
