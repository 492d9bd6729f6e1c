"""Assemble a wheel from build results: check, prepare, write."""

from collections.abc import Mapping
from pathlib import Path

from torchyard.errors import BuildError
from torchyard.package.assemble.assembled import Assembled
from torchyard.package.assemble.prepare import prepare
from torchyard.package.assemble.same_core import check_core
from torchyard.package.policy import policy_for
from torchyard.package.sbom.bill import package_sbom
from torchyard.package.sbom.component import Bill
from torchyard.package.versions import package_folder
from torchyard.package.wheel.manylinux import true_tag
from torchyard.package.wheel.metadata import NAME
from torchyard.package.wheel.name import wheel_tags
from torchyard.package.wheel.write import write_wheel
from torchyard.package.zip.writer import write_debug


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
    spec: Path,
    bill: Bill,
    number: int = 0,
) -> Assembled:
    """Make a wheel from a core (`install`, `vendor`) and the bindings for one Python (`image`).

    Requirements provide the libraries in the compute platform's own wheels: their versions are
    the `pins` of a torch release, and the `toolkit`.
    """
    package = package_folder(name)
    if not (image / package).is_dir():
        msg = f"`{image}` has no folder `{package}`"
        raise BuildError(msg, hint="the package's folder must have the project's name")
    check_core(install, image / package)
    policy = policy_for(NAME, compute, package)
    prepared = prepare(image, scratch, policy, vendor)
    wheel = write_wheel(
        prepared.root,
        out,
        name=name,
        version=version,
        tags=wheel_tags(python),
        platform_tag=true_tag(platform_tag, prepared.versions),
        requires=policy.requirements(prepared.needed, pins, toolkit),
        spec=spec,
        sbom=package_sbom(bill, prepared.root, prepared.bundled),
        number=number,
    )
    return Assembled(wheel, write_debug(prepared.debug, wheel))
