"""List what is in packages."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement

from torchyard.checks.table import load_rule_table
from torchyard.errors import CheckError
from torchyard.features.sbom.report import PackageBill, SbomReport
from torchyard.model.matrix import any_match
from torchyard.model.requirement import parse_requirement
from torchyard.package.contents import Contents, is_torn
from torchyard.package.formats import format_of
from torchyard.package.sbom.component import ALL, Bill, Component, ComponentKind
from torchyard.package.sbom.cyclonedx import carried_bill, encode_bill
from torchyard.package.sbom.purl import pypi_purl
from torchyard.workspace.progress import Meter, no_meter, read_metered

_VERSION = re.compile(r"\.so\.(\d+(?:\.\d+)+)$")
_OPERATOR = re.compile(r" (?:AND|OR|WITH) |[()]")


def list_components(
    packages: Iterable[str | Path],
    *,
    deny: Sequence[str] = (),
    write: str | Path | None = None,
    meter: Meter = no_meter,
) -> SbomReport:
    """Return the bills of materials of packages; those of foreign packages are inferred.

    Args:
        packages: Wheels, conda packages and zips.
        deny: Globs of licences that no component in a package may have.
        write: Folder for the documents (CycloneDX).
        meter: Shows progress.
    """
    found = []
    for path in map(Path, packages):
        contents = read_metered(path, meter)
        if is_torn(contents):
            msg = f"`{path.name}` is damaged, so that files may be missing"
            raise CheckError(msg, hint="`torchyard check` lists what is wrong with it")
        bill = carried_bill(contents) or _inferred(contents)
        if write is not None:
            Path(write).mkdir(parents=True, exist_ok=True)
            Path(write, f"{path.name}.cdx.json").write_bytes(encode_bill(bill))
        found.append(PackageBill(path.name, bill, tuple(_denied(bill, deny))))
    return SbomReport(found)


def _denied(bill: Bill, globs: Sequence[str]) -> Iterator[str]:
    for part in bill.components:
        names = (name.strip() for name in _OPERATOR.split(part.license))
        is_inside = part.kind is not ComponentKind.TOOLCHAIN
        if is_inside and any(any_match(name, globs) for name in names if name):
            yield part.name


def _inferred(contents: Contents) -> Bill:
    """Return what the files and the metadata of a package show."""
    label = format_of(contents).label(contents)
    name = label.name or contents.file_name
    bundled = load_rule_table().bundled_in(contents)
    return Bill(
        name=name,
        version=label.version,
        purl=pypi_purl(name, label.version),
        components=(*(_bundled(contents, path) for path in bundled), *_required(contents)),
        unseen=(ALL,),
        inferred=True,
    )


def _bundled(contents: Contents, path: str) -> Component:
    file, own = contents.files[path], path.rpartition("/")[2]
    version = _VERSION.search(path)
    return Component(
        kind=ComponentKind.BUNDLED,
        name=(file.binary.soname if file.binary else "") or own,
        version=version[1] if version else "",
        digest=file.digest,
        files=(own,),
    )


def _required(contents: Contents) -> Iterator[Component]:
    for text in format_of(contents).requirements(contents):
        try:
            named = parse_requirement(text)
        except InvalidRequirement:
            continue
        pins = (one.version for one in named.specifier if one.operator == "==")
        version = next((pin for pin in pins if "*" not in pin), "")
        purl = pypi_purl(named.name, version)
        kind = ComponentKind.REQUIRED
        yield Component(kind=kind, name=named.name, version=version, purl=purl)
