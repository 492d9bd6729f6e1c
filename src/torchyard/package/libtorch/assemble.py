"""Making the zip of a job; only jobs that write packages import it."""

from pathlib import Path

from torchyard.package.assemble.assembled import Assembled
from torchyard.package.assemble.prepare import prepare
from torchyard.package.libtorch.write import NAME, ZipLabel, write_libtorch
from torchyard.package.policy import policy_for
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
) -> Assembled:
    """Make the zip for C++ from a core, and its third-party libraries unless they are left out."""
    policy = policy_for(NAME, compute, "")
    prepared = prepare(install, scratch, policy, vendor)
    zipped = write_libtorch(prepared.root, out, label, git_hash=git_hash, spec=spec)
    return Assembled(zipped, write_debug(prepared.debug, zipped))
