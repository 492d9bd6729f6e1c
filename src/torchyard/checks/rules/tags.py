"""Rules about labels: a package contains what its name and tags promise."""

import re
from collections.abc import Iterator

from torchyard.checks.expected import spec_in_package
from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.subject import Subject
from torchyard.checks.table import PlatformPrograms, load_rule_table
from torchyard.model.matrix import any_match
from torchyard.model.recipe import Stage
from torchyard.package.conda.index import INDEX, conda_index, is_conda
from torchyard.package.conda.name import SUFFIXES
from torchyard.package.contents import Binary, Contents, is_torn
from torchyard.package.formats import site_path
from torchyard.package.libtorch.format import is_libtorch
from torchyard.package.versions import is_version_of, package_folder
from torchyard.package.wheel.metadata import dist_infos, metadata_fields, values

_MACOS = re.compile(r"macosx_(?P<major>\d+)_(?P<minor>\d+)_")
_MODULE = re.compile(
    r"\.(?:cpython-(?P<unix>\d+t?)d?-[^./]+|cp(?P<windows>\d+t?)-[^./]+|(?P<stable>abi3t?))"
    r"\.(?:so|pyd)$"
)
_CPYTHON = re.compile(r"cp\d+")
_VERSION = re.compile(
    rb"^__version__\s*(?::[^=\n]*)?=\s*(?:\w+\s*=\s*)?(?P<q>['\"])(?P<text>.*?)(?P=q)", re.MULTILINE
)
_GIT = re.compile(rb"^git_version\s*(?::[^=\n]*)?=\s*(?P<text>[^#\n]*)", re.MULTILINE)
_HASH = re.compile(rb"['\"]?[0-9a-f]{7,64}['\"]?")
_SUBDIR = re.compile(r"noarch|[a-z]+-[a-z0-9]+")
_SAME = {"arm64": "aarch64", "amd64": "x86_64", "x86-64": "x86_64", "i386": "i686", "x86": "i686"}
"""Canonical names of machines, by the names on other systems."""

_UNKNOWN = "unknown"
"""Texts that builds of PyTorch and extensions write instead of an unknown commit."""

_FORMATS = {"elf": "an ELF", "mach-o": "a Mach-O", "pe": "a PE"}


@rule("label-platform", Severity.ERROR, "programs for another machine than the label says")
def label_platform(subject: Subject) -> Iterator[Hit]:
    """A library or program is not for the platform of the package's label.

    Installers choose by the label, and the loader refuses the file afterwards. On macOS, no file
    may require a newer system than the label names. Code for GPUs does not count.

    Build for the platform of the label, or retag the package for its actual platform.
    """
    rows = [(tag, load_rule_table().platform(tag)) for tag in subject.expected.platforms]
    for member, binary in _programs(subject):
        problems = (_misfit(binary, tag, row) for tag, row in rows if row and row.machines)
        for problem in dict.fromkeys(filter(None, problems)):
            yield Hit(problem, member, "compile it for the platform of the label, or retag it")


@rule(
    "label-any",
    Severity.WARNING,
    "it works only on some machines, but the label promises all",
    own=Severity.ERROR,
)
def label_any(subject: Subject) -> Iterator[Hit]:
    """A package for any platform has libraries or programs, which are for one.

    On other machines, these files cannot be loaded. That is acceptable if the package brings one
    for each system, or works without them, as debuggers do with the helpers that attach to a
    process. Windows' launchers (`.exe`), which installers copy, and code for GPUs do not count.

    Tag the package with its platform, unless its code chooses among several.
    """
    if _is_for_any(subject):
        launchers = load_rule_table().launchers
        for member, binary in _programs(subject):
            if not any_match(member, launchers):
                what = f"{_FORMATS[binary.format]} file, in a package for any machine"
                yield Hit(what, member, "tag the package with its platform")


def _is_for_any(subject: Subject) -> bool:
    rows = map(load_rule_table().platform, subject.expected.platforms)
    return any(row is not None and not row.machines for row in rows)


def _programs(subject: Subject) -> Iterator[tuple[str, Binary]]:
    """Yield the binaries for a CPU, without GPU code objects."""
    devices = load_rule_table().devices
    for member, file in subject.contents.files.items():
        if file.binary is not None and file.binary.machine not in devices:
            yield member, file.binary


def _misfit(binary: Binary, tag: str, row: PlatformPrograms) -> str:
    """Return why a file does not fit a package with this tag, or ""."""
    machines = {_SAME.get(name.lower(), name) for name in binary.machine.split(",")}
    if binary.format != row.format or not machines.issuperset(row.machines):
        wanted = " and ".join(row.machines)
        wrong = f"{_FORMATS[binary.format]} file for {binary.machine}"
        return f"{wrong}, not {_FORMATS[row.format]} file for {wanted}"
    promised = _MACOS.match(tag)
    if promised and binary.minimum_system:
        least = (int(promised["major"]), int(promised["minor"]))
        if _numbers(binary.minimum_system) > least:
            return f"needs macOS {binary.minimum_system}, but the tag says {least[0]}.{least[1]}"
    return ""


def _numbers(version: str) -> tuple[int, int]:
    major, minor, *_ = [int(part) for part in re.findall(r"\d+", version)] + [0, 0]
    return major, minor


@rule("label-python", Severity.ERROR, "modules that the promised Python can't import")
def label_python(subject: Subject) -> Iterator[Hit]:
    """An extension module is for another Python than the label names.

    `_C.cpython-311-x86_64-linux-gnu.so` is seen by CPython 3.11 only, `_C.cpython-313t-…` by its
    free-threaded build only, and `_C.abi3.so` by all newer ones but free-threaded. Any other Python
    does not find it: `import` fails with "No module named". An ELF file without `PyInit_…` is no
    module: code opens it by its path, whatever its name. A wheel whose tags belong to different
    Pythons, such as `cp311-cp312`, cannot be installed by any.

    Build the module with the Python of the label. A package with modules of the stable ABI has the
    tag `abi3`. Modules in a package for any platform are reported by `label-any`.
    """
    expected = subject.expected
    if not expected.abi or _is_for_any(subject):
        return
    if not _is_of_one_python(expected.python.split("."), expected.abi.split(".")):
        what = f"no Python has the tag {expected.python} and the ABI {expected.abi}"
        yield Hit(what, "", "build it again: the file was renamed, or its backend is wrong")
    for member, file in subject.contents.files.items():
        found = _MODULE.search(member)
        if file.binary and file.binary.format == "elf" and b"PyInit_" not in file.binary.exports:
            continue
        if found and not _fits(found, set(expected.abi.split("."))):
            what = f"the module is for {_spell(found)}, but the label says {expected.abi}"
            yield Hit(what, member, f"compile it for {expected.abi}, or correct the tag")


def _is_of_one_python(pythons: list[str], abis: list[str]) -> bool:
    """Return whether one Python has one of the tags and ABIs; only CPython's ABIs are compared."""
    cpythons = [_CPYTHON.match(abi) for abi in abis]
    return any(match is None or match[0] in pythons for match in cpythons)


def _spell(module: re.Match[str]) -> str:
    return module["stable"] or f"cp{module['unix'] or module['windows']}"


def _fits(module: re.Match[str], abis: set[str]) -> bool:
    """Return whether an ABI of the label can import a module, stable-ABI modules included."""
    if not module["stable"]:
        return _spell(module) in abis
    threads = module["stable"].endswith("t")
    return any(abi.endswith("t") <= threads and abi != "none" for abi in abis)


@rule("label-version", Severity.ERROR, "the package reports another version than its label")
def label_version(subject: Subject) -> Iterator[Hit]:
    """The version inside the package differs from the version of its label.

    `torch.__version__`, or the file `build-version` of a libtorch zip, should be the version of the
    metadata. The local part may be in one of them only: a label without it is what PyPI requires,
    and an extension's label names its torch, which its code does not. If there is a `git_version`,
    it should be the hash of a commit; a package that torchyard made of a source without commits,
    such as Debian's, has none.

    Generate all of them from one source, and build from a git checkout.
    """
    contents = subject.contents
    label = _label(subject)
    for member, text in contents.texts.items():
        if _is_version_file(subject, member):
            found = _VERSION.search(text)
            value = found["text"].decode(errors="replace") if found else label
            if label and not (is_version_of(value, label) or is_version_of(label, value)):
                yield Hit(f"`__version__` is {value}, but the package is {label}", member)
            git = _GIT.search(text)
            if git and not _HASH.fullmatch(git["text"].strip()):
                value = git["text"].strip().decode(errors="replace")
                if value.strip("'\"").lower() == _UNKNOWN and not _has_commit(subject):
                    continue
                yield Hit(f"`git_version` is not a commit: {value}", member)
        elif is_libtorch(contents) and member.count("/") == 1:
            said_nothing = not text.strip() and not _has_commit(subject)
            yield from () if said_nothing else _in_zip(member, text.strip(), label)


def _has_commit(subject: Subject) -> bool:
    """Return whether a package must name its commit: unless its spec has none."""
    spec = spec_in_package(subject.contents)
    if spec is None or not spec.tasks:
        return True
    sources = [task for task in spec.tasks if task.stage is Stage.SOURCE]
    return any(task.text("commit") or task.text("digest") for task in sources)  # no archive


def _in_zip(member: str, text: bytes, label: str) -> Iterator[Hit]:
    text_read = text.decode(errors="replace")
    if member.endswith("/build-version") and label and not is_version_of(text_read, label):
        yield Hit(f"the file says {text_read}, but the package is {label}", member)
    if member.endswith("/build-hash") and not _HASH.fullmatch(text):
        yield Hit(f"this is not a commit: {text_read}", member)


def _label(subject: Subject) -> str:
    """Return the version in the metadata; for a zip, in its name."""
    contents = subject.contents
    index = conda_index(contents)
    if index is not None:
        return index.version
    stated = values(metadata_fields(contents), "Version")
    return stated[0] if stated else subject.expected.version


def _is_version_file(subject: Subject, member: str) -> bool:
    """Return whether a file is `version.py` of the package's own Python package.

    A conda package may have another name than the folder, and usually has one folder.
    """
    path = site_path(subject.contents, member)
    folder, _, name = (path or "").partition("/")
    if name not in {"version.py", "_version.py"}:
        return False
    package = package_folder(subject.expected.name).lower()
    return is_conda(subject.contents) or folder.lower() == package


@rule("label-name", Severity.ERROR, "a conda package under another name than its own")
def label_name(subject: Subject) -> Iterator[Hit]:
    """The file name of a conda package is not what `info/index.json` says.

    A channel lists packages by their file names, and installers unpack them by what is inside. The
    name is NAME-VERSION-BUILD, and a subdir such as `linux-64` is required. A truncated archive is
    reported by `archive-structure` only.

    Do not rename conda packages; build them again.
    """
    contents: Contents = subject.contents
    if not is_conda(contents):
        return
    index = conda_index(contents)
    if index is None:
        if not is_torn(contents):
            yield Hit("the package has no readable index", INDEX)
        return
    stem = f"{index.name}-{index.version}-{index.build}"
    if contents.file_name not in {f"{stem}{suffix}" for suffix in SUFFIXES}:
        yield Hit(f"the index says {stem}, but the file is {contents.file_name}", INDEX)
    if not _SUBDIR.fullmatch(index.subdir):
        yield Hit(f"the index has no subdir such as linux-64, but `{index.subdir}`", INDEX)


@rule("label-zip", Severity.WARNING, "this is not a libtorch zip, so hardly anything was checked")
def label_zip(subject: Subject) -> Iterator[Hit]:
    """A zip is treated as a libtorch archive, but contains nothing that identifies it as one.

    A libtorch zip has libraries in a folder `lib`, or a file `build-version`. For any other zip the
    expected content is unknown, so the absence of findings means nothing. A wheel that was renamed
    to `.zip` is reported as well: it is not checked as a wheel.

    Restore the file's original suffix: `….whl` for a wheel, `….conda` for a conda package.
    """
    contents = subject.contents
    if not is_libtorch(contents) or is_torn(contents):
        return
    globs = load_rule_table().libtorch
    if found := dist_infos(contents):
        what = f"this is a wheel under another name: it has {found[0]}"
        yield Hit(what, f"{found[0]}/", "rename it to end in .whl")
    elif not any(any_match(name, globs) for name in contents.files):
        yield Hit("nothing identifies this as a libtorch zip", "", "check what the file is")
