"""Assembling a libtorch zip from build results: prepare, write."""

from pathlib import Path

from torchyard.package.assemble.assembled import Assembled
from torchyard.package.assemble.prepare import prepare
from torchyard.package.libtorch.write import NAME, write_libtorch
from torchyard.package.policy import policy_for
from torchyard.package.zip.writer import write_debug


def assemble_libtorch(  # noqa: PLR0913 - what a zip is made of
    *,
    install: Path,
    vendor: Path,
    scratch: Path,
    out: Path,
    name: str,
    version: str,
    compute: str,
    git_hash: str,
    order: Path,
    number: int = 0,
) -> Assembled:
    """Make the zip for C++ from a core."""
    policy = policy_for(NAME, compute, "")
    prepared = prepare(install, scratch, policy, vendor)
    zipped = write_libtorch(
        prepared.root,
        out,
        name=name,
        version=version,
        git_hash=git_hash,
        order=order,
        number=number,
    )
    return Assembled(zipped, write_debug(prepared.debug, zipped))
