"""From what was built to a wheel or a zip: check, prepare, write."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from torchyard.errors import BuildError
from torchyard.package.assemble.prepare import prepare
from torchyard.package.assemble.same_core import check_core
from torchyard.package.libtorch import write_libtorch
from torchyard.package.policy import Layout, policy_for
from torchyard.package.versions import package_folder, wheel_tags
from torchyard.package.wheel.manylinux import true_tag
from torchyard.package.wheel.write import write_wheel
from torchyard.package.zip.writer import write_debug


class Assembled(NamedTuple):
    """A package, and the archive of its debug information if it had any."""

    package: Path
    debug: Path | None


def assemble_wheel(  # noqa: PLR0913 - what a wheel is made of
    *,
    install: Path,
    vendor: Path,
    image: Path,
    scratch: Path,
    out: Path,
    name: str,
    version: str,
    python: str,
    platform_tag: str,
    compute: str,
    toolkit: str,
    pins: Mapping[str, str],
    order: Path,
) -> Assembled:
    """Make a wheel from a core (`install`, `vendor`) and the bindings for one Python (`image`).

    Libraries of the compute platform's own wheels are asked for by requirements: their versions are
    the `pins` of a torch release, and that of the `toolkit`.
    """
    package = package_folder(name)
    if not (image / package).is_dir():
        msg = f"`{image}` has no folder `{package}`"
        raise BuildError(msg, hint="the package's folder must be called like the project")
    check_core(install, image / package)
    policy = policy_for(Layout.WHEEL, compute, package)
    prepared = prepare(image, scratch, policy, vendor)
    wheel = write_wheel(
        prepared.root,
        out,
        name=name,
        version=version,
        tags=wheel_tags(python),
        platform_tag=true_tag(platform_tag, prepared.versions),
        requires=policy.requirements(prepared.needed, pins, toolkit),
        order=order,
    )
    return Assembled(wheel, write_debug(prepared.debug, wheel))


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
) -> Assembled:
    """Make the zip for C++ from a core."""
    policy = policy_for(Layout.LIBTORCH, compute, "")
    prepared = prepare(install, scratch, policy, vendor)
    zipped = write_libtorch(
        prepared.root, out, name=name, version=version, git_hash=git_hash, order=order
    )
    return Assembled(zipped, write_debug(prepared.debug, zipped))
