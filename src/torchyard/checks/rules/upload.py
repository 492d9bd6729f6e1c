"""Rules about refusals of the policy's package index; without an index they find nothing."""

import re
from collections.abc import Iterator
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from email.utils import parseaddr
from urllib.parse import urlsplit

from packaging.utils import parse_wheel_filename
from packaging.version import Version

from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.rules.linking import and_others
from torchyard.checks.subject import Subject
from torchyard.checks.uploads import UploadLimits, load_uploads
from torchyard.model.matrix import any_match
from torchyard.model.quantity import parse_size, show_size
from torchyard.model.requirement import parse_requirement
from torchyard.package.contents import is_torn
from torchyard.package.wheel.metadata import (
    about_text,
    dist_info,
    is_wheel,
    metadata_fields,
    values,
)
from torchyard.package.wheel.write import Field

_EMAIL = re.compile(r"[^\s@\"(),:;<>\[\\\]]+@[\w-]+(?:\.[\w-]+)+")
_SCHEMES = frozenset(("http", "https"))
_ENTRY_POINT = re.compile(r"[\w.-]+")
_SCRIPTS = ("console_scripts", "gui_scripts")
_LICENSES_SINCE = Version("2.4")
"""The version of metadata in which License-File names files of the folder `licenses`."""


class _CaseSensitive(ConfigParser):
    """Entry points are case-sensitive, and have `=` between name and object."""

    def __init__(self) -> None:
        super().__init__(delimiters=("=",), interpolation=None)

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def _limits(subject: Subject) -> UploadLimits | None:
    """Return the limits of the policy's index for a wheel, or None."""
    name = subject.policy.index
    return load_uploads()[name] if name and is_wheel(subject.contents) else None


@rule("upload-platform", Severity.ERROR, "the index refuses wheels for such a platform")
def upload_platform(subject: Subject) -> Iterator[Hit]:
    """The package index does not accept a platform tag of the wheel.

    `linux_x86_64` does not name the oldest system that the wheel runs on, so PyPI accepts only
    manylinux and musllinux tags for Linux, and known versions and machines of other systems.

    Build for the oldest system that is to be supported, and name it: `torchyard repair
    --platform-tag manylinux_2_28_x86_64` changes the tag, and checks that the libraries keep to it.
    """
    limits = _limits(subject)
    if limits is None:
        return
    for tag in subject.expected.platforms:
        if not any(re.fullmatch(pattern, tag) for pattern in limits.platforms):
            what = f"{subject.policy.index} does not accept wheels for `{tag}`"
            hint = "`torchyard repair --platform-tag` writes another, if the libraries keep to it"
            yield Hit(what, hint=hint)


@rule("upload-version", Severity.ERROR, "the index refuses local versions")
def upload_version(subject: Subject) -> Iterator[Hit]:
    """The version has a local part, such as `+cu130`.

    Local versions are for builds that are passed on elsewhere; PyPI refuses them. Variants of one
    release need names or an index of their own.

    Remove it with `torchyard repair --local none`, or publish to a channel of your own.
    """
    if _limits(subject) is None:
        return
    for version in values(metadata_fields(subject.contents), "Version"):
        if "+" in version:
            what = f"{subject.policy.index} does not accept local versions: {version}"
            member = f"{dist_info(subject.contents)}/METADATA"
            yield Hit(what, member, "`torchyard repair --local none` removes it")


@rule("upload-metadata", Severity.ERROR, "the index refuses the metadata")
def upload_metadata(subject: Subject) -> Iterator[Hit]:
    """METADATA is valid, but the package index refuses it.

    PyPI refuses an unknown version of metadata, a summary of more than 512 characters,
    invalid e-mail addresses and URLs, unknown fields in `Dynamic`, `License` together with
    `License-Expression`, a `License-File` that is not in the wheel, and the classifier `Private ::
    Do Not Upload`. Whether other classifiers exist is not checked.

    Correct the source from which the build backend generates it, usually `pyproject.toml`.
    """
    limits = _limits(subject)
    if limits is None:
        return
    fields = metadata_fields(subject.contents)
    member = f"{dist_info(subject.contents)}/METADATA"
    for problem in (
        *_versions(fields, limits),
        *_texts(fields, limits),
        *_addresses(fields, limits),
        *_licenses(subject, fields),
    ):
        yield Hit(f"{subject.policy.index} refuses {problem}", member)


def _versions(fields: list[Field], limits: UploadLimits) -> Iterator[str]:
    for version in values(fields, "Metadata-Version"):
        if version not in limits.metadata_versions:
            yield f"metadata of version {version}"
    for name in values(fields, "Dynamic"):
        if name.lower() not in limits.dynamic:
            yield f"the dynamic field `{name}`"


def _texts(fields: list[Field], limits: UploadLimits) -> Iterator[str]:
    for summary in values(fields, "Summary"):
        if len(summary) > limits.summary:
            yield f"a summary of {len(summary)} characters: the limit is {limits.summary}"
    for name in values(fields, "Classifier"):
        if any_match(name, limits.private_classifiers):
            yield f"the classifier `{name}`"


def _addresses(fields: list[Field], limits: UploadLimits) -> Iterator[str]:
    for field in ("Author-email", "Maintainer-email"):
        for text in values(fields, field):
            address = parseaddr(text)[1]
            if address and not _EMAIL.fullmatch(address):
                yield f"`{address}` in {field}, which is not an e-mail address"
    for field in ("Home-page", "Download-URL"):
        for url in values(fields, field):
            if not _is_url(url):
                yield f"`{url}` in {field}, which is not a URL"
    for text in values(fields, "Project-URL"):
        label, _, url = (part.strip() for part in text.partition(","))
        if not label or len(label) > limits.url_label:
            yield f"the label `{label}` in Project-URL: it may have 1 to {limits.url_label} letters"
        elif not _is_url(url):
            yield f"`{url}` in Project-URL, which is not a URL"


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in _SCHEMES and bool(parts.netloc) and " " not in text


def _licenses(subject: Subject, fields: list[Field]) -> Iterator[str]:
    if values(fields, "License") and values(fields, "License-Expression"):
        yield "License together with License-Expression"
    try:
        is_new = any(Version(v) >= _LICENSES_SINCE for v in values(fields, "Metadata-Version"))
    except ValueError:
        return  # metadata-valid reports it
    folder = f"{dist_info(subject.contents)}/licenses"
    for name in values(fields, "License-File") if is_new else ():
        if f"{folder}/{name}" not in subject.contents.files:
            yield f"License-File `{name}`: it is not in {folder}"


@rule("upload-requirement", Severity.ERROR, "the index refuses requirements from elsewhere")
def upload_requirement(subject: Subject) -> Iterator[Hit]:
    """A requirement names an address to install it from.

    With `Requires-Dist: demo @ https://…`, the owner of the address can replace the package, which
    is not found where only the index is reachable. PyPI refuses it.

    Require a name and a version, and publish the other project, too.
    """
    if _limits(subject) is None:
        return
    for field in ("Requires-Dist", "Provides-Dist", "Obsoletes-Dist"):
        for text in values(metadata_fields(subject.contents), field):
            try:
                url = parse_requirement(text).url
            except ValueError:
                continue  # metadata-valid reports it
            if url:
                what = f"{subject.policy.index} refuses requirements with an address: {text}"
                yield Hit(what, f"{dist_info(subject.contents)}/METADATA", "name only a version")


@rule("upload-name", Severity.ERROR, "the index refuses the name of the file")
def upload_name(subject: Subject) -> Iterator[Hit]:
    """The file's name is not in the form that the package index requires.

    It has to begin with the normalised name of the project, in small letters and with `_` between
    words, and the folder `.dist-info` has to be spelt like the name and version of the file.
    Installers are more lenient.

    Build the wheel with a recent version of the backend.
    """
    folder = dist_info(subject.contents)
    if _limits(subject) is None or not folder:
        return
    name, version, *_ = (*subject.contents.file_name.split("-"), "")
    try:
        right = parse_wheel_filename(subject.contents.file_name)[0].replace("-", "_")
    except ValueError:
        return  # metadata-name reports it
    if name != right:
        yield Hit(f"{subject.policy.index} requires a name starting with `{right}`, not `{name}`")
    elif folder != f"{name}-{version}.dist-info":
        what = f"{subject.policy.index} requires exactly {name}-{version}.dist-info"
        yield Hit(what, f"{folder}/")


@rule("upload-entry-points", Severity.ERROR, "the index refuses the entry points")
def upload_entry_points(subject: Subject) -> Iterator[Hit]:
    """`entry_points.txt` can't be read, or has a script whose name is a path.

    Installers write a script of that name into the folder for programs: with `/` or `..` in it, it
    would be written elsewhere. The file is in the format of INI files, in UTF-8, with `=` between
    name and object.

    Correct the scripts and entry points in `pyproject.toml`.
    """
    text = about_text(subject.contents, "entry_points.txt")
    if _limits(subject) is None or text is None:
        return
    member = f"{dist_info(subject.contents)}/entry_points.txt"
    parser = _CaseSensitive()
    try:
        parser.read_string(text.decode())
    except (UnicodeDecodeError, ConfigParserError) as error:
        yield Hit(f"the file can't be read: {str(error).partition(chr(10))[0]}", member)
        return
    for section in _SCRIPTS:
        for name in parser.options(section) if parser.has_section(section) else ():
            if not _ENTRY_POINT.fullmatch(name):
                yield Hit(f"`{name}` is not a valid name of a script", member)


@rule("upload-archive", Severity.ERROR, "the index refuses the archive")
def upload_archive(subject: Subject) -> Iterator[Hit]:
    """The archive is valid, but has something that the package index refuses in wheels.

    PyPI refuses zip archives that were written as a stream (with data descriptors behind members),
    comments of members, and archives that unpack to more than fifty times their size. Archives that
    can be read in two ways are reported by `archive-structure`.

    Write the wheel again with an ordinary zip writer, into a file.
    """
    contents, limits = subject.contents, _limits(subject)
    if limits is None or is_torn(contents):
        return
    groups: dict[str, list[str]] = {}
    for oddity in contents.oddities:
        groups.setdefault(oddity.what, []).append(oddity.member)
    for what, members in groups.items():
        yield Hit(f"{what}{and_others(len(members) - 1)}", members[0])
    unpacked = sum(file.size for file in contents.files.values())
    most = max(parse_size(limits.expansion_least), limits.expansion * contents.size)
    if unpacked > most:
        what = f"it unpacks to {show_size(unpacked)}, more than {limits.expansion} times its size"
        yield Hit(what)
