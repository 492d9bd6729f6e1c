"""Keep the bill of materials of a repaired package true."""

from collections.abc import Iterable

from msgspec.structs import replace

from torchyard.package.assemble.vendor import Vendored
from torchyard.package.repair.draft import PackageDraft
from torchyard.package.sbom.component import SBOM_FILE, Bill, Component, ComponentKind
from torchyard.package.sbom.cyclonedx import decode_bill, encode_bill
from torchyard.package.sbom.purl import pypi_purl


def rename_in_bill(draft: PackageDraft, version: str) -> None:
    """Change the package's version in its bill, if it has one."""
    for member, bill in _bills(draft):
        new = replace(bill, version=version, purl=pypi_purl(bill.name, version))
        draft.replace(member, encode_bill(new), f"version {bill.version} → {version}")


def add_to_bill(draft: PackageDraft, brought: Iterable[Vendored]) -> None:
    """Add bundled libraries to the package's bill, if it has one."""
    kind = ComponentKind.BUNDLED
    parts = [Component(kind=kind, name=v.soname, files=(v.target.name,)) for v in brought]
    for member, bill in _bills(draft) if parts else ():
        new = replace(bill, components=(*bill.components, *parts))
        draft.replace(member, encode_bill(new), f"lists {', '.join(part.name for part in parts)}")


def _bills(draft: PackageDraft) -> list[tuple[str, Bill]]:
    names = [name for name in draft.entries if name.rpartition("/")[2] == SBOM_FILE]
    return [(name, decode_bill(draft.current(name), name)) for name in names]
