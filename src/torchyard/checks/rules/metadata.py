"""Rules about a wheel's own metadata: WHEEL, METADATA, and the folder that contains them."""

from collections import Counter
from collections.abc import Iterator
from math import prod

from packaging.metadata import InvalidMetadata, Metadata
from packaging.tags import parse_tag
from packaging.utils import (
    canonicalize_name,
    parse_wheel_filename,
)
from packaging.version import Version

from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.subject import Subject
from torchyard.checks.table import load_rule_table
from torchyard.errors import BuildError
from torchyard.model.matrix import any_match
from torchyard.package.contents import Contents, is_torn
from torchyard.package.wheel.metadata import (
    about_text,
    dist_info,
    dist_infos,
    fields_of,
    is_wheel,
    metadata_fields,
    values,
)
from torchyard.package.wheel.write import Field, parse_metadata

_LONG = 255
"""Maximum length of a tag, more than fits into a file's name."""
_MOST_TAGS = 10_000
_RENAME = "change names by `torchyard repair`, which also writes them into the wheel"

_BEFORE_LICENSES = frozenset(("1.0", "1.1", "1.2", "2.1", "2.2", "2.3"))


@rule("dist-info", Severity.ERROR, "installers don't know which package this is")
def dist_info_folder(subject: Subject) -> Iterator[Hit]:
    """A wheel must have one folder `.dist-info`, with the name and version of the file's name.

    Installers read the package's metadata from it. A second folder is usually left over from an
    earlier build; a folder of another name or version means that the wheel was renamed without
    being rewritten.

    Build in a clean directory. To rename or retag a wheel use `torchyard repair`.
    """
    contents, expected = subject.contents, subject.expected
    if not is_wheel(contents):
        return
    found = dist_infos(contents)
    if not found and is_torn(contents):
        return  # archive-structure reports why
    if len(found) != 1:
        names = ", ".join(found) or "none"
        yield Hit(f"the wheel should have one folder *.dist-info, but has {names}")
    elif expected.name:
        name, _, version = found[0].removesuffix(".dist-info").partition("-")
        if not _is_same(name, version, expected.name, expected.version):
            what = f"the folder's name is not that of {expected.name} {expected.version}"
            yield Hit(what, f"{found[0]}/", _RENAME)


def _is_same(name: str, version: str, other_name: str, other_version: str) -> bool:
    if canonicalize_name(name) != canonicalize_name(other_name):
        return False
    return _is_version(version, other_version)


def _is_version(version: str, other: str) -> bool:
    try:
        return Version(version) == Version(other)
    except ValueError:
        return version == other


@rule("wheel-file", Severity.ERROR, "installers refuse the wheel, or misplace its files")
def wheel_file(subject: Subject) -> Iterator[Hit]:
    """WHEEL, the file about the format of a wheel, is missing or wrong.

    It must have a `Wheel-Version` of 1, and exactly one `Root-Is-Purelib`, true or false.

    Build the wheel with a backend that follows the specification.
    """
    contents = subject.contents
    folder = dist_info(contents)
    if not folder:
        return
    member = f"{folder}/WHEEL"
    fields = _fields(contents, "WHEEL")
    if isinstance(fields, str):
        yield Hit(fields, member)
        return
    version = values(fields, "Wheel-Version")
    if len(version) != 1 or not version[0].startswith("1."):
        yield Hit(f"Wheel-Version should be 1.0, not {' and '.join(version) or 'missing'}", member)
    purelib = [value.lower() for value in values(fields, "Root-Is-Purelib")]
    if purelib not in (["true"], ["false"]):
        yield Hit("Root-Is-Purelib should be true or false, once", member)


@rule(
    "wheel-purelib",
    Severity.WARNING,
    "libraries are installed where only Python files belong",
    own=Severity.ERROR,
)
def wheel_purelib(subject: Subject) -> Iterator[Hit]:
    """A wheel with libraries or programs declares that it contains only Python files.

    `Root-Is-Purelib: true` lets installers put all of it into the folder for Python files, which
    some systems keep apart from the one for libraries and share between machines. On most systems
    both are one folder, so it goes unnoticed. Windows' launchers (`.exe`), which installers copy,
    do not count, nor wheels whose tag is `any`: `label-any` reports these.

    Build the wheel with a backend that knows it has extension modules.
    """
    contents = subject.contents
    purelib = values(fields_of(about_text(contents, "WHEEL") or b""), "Root-Is-Purelib")
    if [value.lower() for value in purelib] != ["true"] or "any" in subject.expected.platforms:
        return
    launchers = load_rule_table().launchers
    binaries = (name for name, file in contents.files.items() if file.binary)
    binary = next((name for name in binaries if not any_match(name, launchers)), None)
    if binary is not None:
        what = f"Root-Is-Purelib is true, but there is {binary}"
        yield Hit(what, f"{dist_info(contents)}/WHEEL", "write `Root-Is-Purelib: false`")


def _fields(contents: Contents, name: str) -> list[Field] | str:
    """Return the fields of WHEEL or METADATA, or why they cannot be read."""
    text = about_text(contents, name)
    if text is None:
        return f"the wheel has no readable {name}"
    try:
        return parse_metadata(text.decode())[0]
    except UnicodeDecodeError as error:
        return f"{name} is not UTF-8: {error.reason}"
    except BuildError as error:
        return str(error).replace("METADATA", name)


@rule("wheel-tags", Severity.ERROR, "a renamed wheel: its tags are not those of its name")
def wheel_file_tags(subject: Subject) -> Iterator[Hit]:
    """The tags in WHEEL are not those of the file's name.

    Installers choose a wheel by the tags in its name; tools that look at installed packages read
    those in WHEEL. They differ if the file was renamed, for instance to claim an older Linux than
    the libraries were built for.

    Use `torchyard repair`, which writes both, and checks that the libraries satisfy the new tag.
    """
    text = about_text(subject.contents, "WHEEL")
    try:
        _, _, _, promised = parse_wheel_filename(subject.contents.file_name)
    except ValueError:
        return  # metadata-name reports it
    if text is None:
        return
    member = f"{dist_info(subject.contents)}/WHEEL"
    tags: set[str] = set()
    spelt = values(fields_of(text), "Tag")
    if sum(map(_breadth, spelt)) > _MOST_TAGS:
        yield Hit(f"WHEEL expands to more than {_MOST_TAGS} tags", member)
        return
    for tag in spelt:
        try:
            tags.update(map(str, parse_tag(tag)))
        except ValueError:
            yield Hit(f"this is not a tag: {tag[:_LONG]}", member)
    named = set(map(str, promised))
    if missing := sorted(named - tags):
        what = f"WHEEL lacks tags of the file's name: {', '.join(missing)}"
        yield Hit(what, member, _RENAME)
    if more := sorted(tags - named):
        what = f"the file's name lacks tags of WHEEL: {', '.join(more)}"
        yield Hit(what, member, _RENAME)


def _breadth(tag: str) -> int:
    """Return how many tags a compressed tag expands to; three long lists may give billions."""
    return prod(part.count(".") + 1 for part in tag.split("-"))


@rule("metadata-valid", Severity.ERROR, "installers and indexes refuse the metadata")
def metadata_valid(subject: Subject) -> Iterator[Hit]:
    """METADATA is missing, or does not follow the specification of core metadata.

    Package indexes refuse such a wheel, and installers ignore fields that they cannot read, such as
    a malformed requirement. The specification is at
    https://packaging.python.org/specifications/core-metadata/

    Correct the source from which the build backend generates it, usually `pyproject.toml`.
    """
    folder = dist_info(subject.contents)
    if not folder:
        return
    member = f"{folder}/METADATA"
    fields = _fields(subject.contents, "METADATA")
    if isinstance(fields, str):
        yield Hit(fields, member)
        return
    try:
        Metadata.from_email(subject.contents.texts[member], validate=True)
    except ExceptionGroup as group:
        for error in group.exceptions:
            if not _is_early(error, fields):
                yield Hit(f"METADATA is not valid: {error}", member)
    except (ValueError, RecursionError) as error:  # thousands of digits or parentheses
        yield Hit(f"METADATA is not valid: {error}", member)


def _is_early(error: Exception, fields: list[Field]) -> bool:
    """Return whether an error is about License-File, which setuptools wrote before it was standard.

    All indexes and installers accept it.
    """
    is_license = isinstance(error, InvalidMetadata) and error.field == "license-file"
    return is_license and any(
        version in _BEFORE_LICENSES for version in values(fields, "Metadata-Version")
    )


@rule("metadata-name", Severity.ERROR, "the name of the file promises another package")
def metadata_name(subject: Subject) -> Iterator[Hit]:
    """The name or the version in METADATA is not that of the file's name.

    Installers download by the file's name and record METADATA: they install the same
    package over and over, or refuse it. It comes from renaming a file, or from a version that was
    computed twice. A file whose name is not NAME-VERSION-PYTHON-ABI-PLATFORM.whl is reported,
    too.

    Use `torchyard repair` to change a version; it rewrites all occurrences.
    """
    contents, expected = subject.contents, subject.expected
    if not is_wheel(contents):
        return
    try:
        parse_wheel_filename(contents.file_name)
    except ValueError as error:
        yield Hit(f"the file's name is not that of a wheel: {error}")
        return
    fields = metadata_fields(contents)
    member = f"{dist_info(contents)}/METADATA"
    for name in values(fields, "Name"):
        if canonicalize_name(name) != expected.name:
            yield Hit(f"METADATA says `{name}`, but the file's name `{expected.name}`", member)
    for version in values(fields, "Version"):
        if not _is_version(version, expected.version):
            what = f"METADATA says version {version}, but the file's name {expected.version}"
            yield Hit(what, member)


@rule("metadata-siblings", Severity.ERROR, "resolvers read one wheel's metadata for all of them")
def metadata_siblings(subject: Subject) -> Iterator[Hit]:
    """Wheels of the same name and version have different METADATA.

    Resolvers such as those of uv and Poetry read the metadata of one wheel and apply it to all
    wheels of that version. A requirement of only some of them is then missing, or is
    installed everywhere. Wheels are compared with those that are checked together with them; the
    one that differs is reported.

    Declare requirements for some systems or Pythons in all wheels, with environment markers.
    """
    contents = subject.contents
    ours = metadata_fields(contents)
    group = [other for other in subject.others if _is_sibling(subject, other)]
    if not ours or not group:
        return
    described = {other.file_name: _shared_fields(other) for other in (contents, *group)}
    times = Counter(described.values())
    usual = max(sorted(described), key=lambda name: times[described[name]])
    if described[usual] == described[contents.file_name]:
        return
    differing = set(described[usual]) ^ set(described[contents.file_name])
    names = ", ".join(sorted({name for name, _ in differing}, key=str.lower))
    what = f"METADATA is not that of {usual}: it differs in {names}"
    yield Hit(what, f"{dist_info(contents)}/METADATA")


def _is_sibling(subject: Subject, other: Contents) -> bool:
    ours, theirs = metadata_fields(subject.contents), metadata_fields(other)
    names = [[canonicalize_name(n) for n in values(fields, "Name")] for fields in (ours, theirs)]
    return names[0] == names[1] != [] and values(ours, "Version") == values(theirs, "Version")


def _shared_fields(contents: Contents) -> frozenset[tuple[str, tuple[str, ...]]]:
    """Return every field with its values, and the description, regardless of their order."""
    text = (about_text(contents, "METADATA") or b"").decode(errors="replace")
    fields, description = parse_metadata(text)
    names = {field.name.title() for field in fields}
    fields_of = {(name, tuple(sorted(values(fields, name)))) for name in names}
    return frozenset(fields_of | {("Description", (description.strip(),))})


@rule("sbom-missing", Severity.NOTE, "scanners cannot see which libraries are bundled")
def sbom_missing(subject: Subject) -> Iterator[Hit]:
    """A wheel bundles third-party libraries without a software bill of materials.

    Vulnerability scanners cannot see which libraries a wheel contains. PEP 770 reserves a place for
    a bill of materials in any format: the folder `sboms` in `.dist-info`.

    Let the tool that bundles the libraries write one; auditwheel 6.4 and newer does.
    """
    contents = subject.contents
    folder = dist_info(contents)
    if not folder or any(name.startswith(f"{folder}/sboms/") for name in contents.files):
        return
    if bundled := load_rule_table().bundled_in(contents):
        yield Hit(f"no bill of materials lists {', '.join(sorted(bundled))}", f"{folder}/sboms/")
