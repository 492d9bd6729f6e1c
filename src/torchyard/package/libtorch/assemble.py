"""Make the zip of a job; imported only by jobs that write packages."""

from pathlib import Path

from torchyard.package.assemble.assembled import Assembled
from torchyard.package.assemble.prepare import prepare
from torchyard.package.libtorch.write import NAME, ZipLabel, write_libtorch
from torchyard.package.policy import policy_for
from torchyard.package.sbom.bill import package_sbom
from torchyard.package.sbom.component import Bill
from torchyard.package.zip.writer import write_debug


def assemble_libtorch(  # noqa: PLR0913 - what a zip is made of
    label: ZipLabel,
    *,
    install: Path,
    vendor: Path | None,
    scratch: Path,
    out: Path,
    compute: str,
    git_hash: str,
    spec: Path,
    bill: Bill,
) -> Assembled:
    """Make the zip for C++ from a core, with its third-party libraries unless excluded."""
    policy = policy_for(NAME, compute, "")
    prepared = prepare(install, scratch, policy, vendor)
    sbom = package_sbom(bill, prepared.root, prepared.bundled)
    zipped = write_libtorch(prepared.root, out, label, git_hash=git_hash, spec=spec, sbom=sbom)
    return Assembled(zipped, write_debug(prepared.debug, zipped))
