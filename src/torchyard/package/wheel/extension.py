"""Make the wheel of an extension: the project's own, with a label for what it fits."""

import re
from email.parser import HeaderParser
from importlib.metadata import distributions
from itertools import chain
from pathlib import Path

from packaging.utils import canonicalize_name

from torchyard.errors import BuildError
from torchyard.model.abi import AbiClass
from torchyard.model.tables import TORCH_PREFIX
from torchyard.package.assemble.assembled import Assembled
from torchyard.package.assemble.prepare import prepare
from torchyard.package.format import PackageBuild
from torchyard.package.policy import extension_policy
from torchyard.package.sbom.bill import package_sbom
from torchyard.package.versions import is_version_of, package_folder
from torchyard.package.wheel.dist_info import find_dist_info
from torchyard.package.wheel.manylinux import true_tag
from torchyard.package.wheel.metadata import NAME
from torchyard.package.wheel.name import ABI3, WheelTags, wheel_tags
from torchyard.package.wheel.write import write_wheel
from torchyard.package.zip.writer import write_debug

BROUGHT = "brought.txt"
"""The file of a bindings result with the libraries that requirements bring."""


def assemble_extension(build: PackageBuild, bindings: Path) -> Assembled:
    """Make a wheel from the project's own: labelled, stripped, with its bundled libraries."""
    task, facts = build.spec.task, build.spec.task.facts
    image, vendor = bindings / "image", bindings / "vendor"
    _check_project(image, facts["name"], facts["version"])
    noted = bindings / BROUGHT
    brought = noted.read_text(encoding="utf-8").split() if noted.exists() else ()
    policy = extension_policy(NAME, package_folder(facts["name"]), brought)
    prepared = prepare(image, build.scratch, policy, vendor)
    release = facts["variant"].removeprefix(TORCH_PREFIX)
    abi = AbiClass(task.text("abi") or AbiClass.FULL)
    wheel = write_wheel(
        prepared.root,
        build.out,
        name=facts["name"],
        version=f"{facts['version']}+{task.text('label')}",
        tags=_tags(image, facts["python"], abi),
        platform_tag=true_tag(task.text("platform_tag"), prepared.versions),
        requires=[
            f"torch>={release}" if abi.fits_torches else f"torch=={release}.*",
            *task.words("dependencies"),
        ],
        spec=build.carried,
        sbom=package_sbom(build.bill, prepared.root, prepared.bundled),
        number=build.number,
    )
    return Assembled(wheel, write_debug(prepared.debug, wheel))


def required_libraries(image: Path, environment: Path) -> list[str]:
    """Return the libraries in an environment from the requirements of a project's wheel."""
    requirements = HeaderParser().parsestr(_read(image, "METADATA")).get_all("Requires-Dist", [])
    names = {canonicalize_name(re.split(r"[^\w.-]", text)[0]) for text in requirements}
    installed = distributions(path=[str(p) for p in environment.glob("lib/python3*/site-packages")])
    required = (dist for dist in installed if canonicalize_name(dist.name) in names)
    files = chain.from_iterable(dist.files or () for dist in required)
    return sorted({file.name for file in files if ".so" in file.suffixes})


def _check_project(image: Path, name: str, version: str) -> None:
    """Fail unless the wheel has the cell's name and version."""
    metadata = HeaderParser().parsestr(_read(image, "METADATA"))
    made, release = metadata["Name"] or "", metadata["Version"] or ""
    if canonicalize_name(made) != canonicalize_name(name) or not is_version_of(release, version):
        msg = f"the source builds {made} {release}, not {name} {version}"
        raise BuildError(msg, hint="correct `name` and `version` of [project]")


def _tags(image: Path, python: str, abi: AbiClass) -> WheelTags:
    """Return the first two tags of the wheel: those of its cell, or of the stable ABI.

    A project that claims every Python gets the tags of its cell, too, as only that is tested.
    """
    tags = [
        tag.split("-") for tag in HeaderParser().parsestr(_read(image, "WHEEL")).get_all("Tag", [])
    ]
    cell_tags = wheel_tags(python)
    for tag in tags:
        if tag[1:2] == [ABI3]:
            return WheelTags(tag[0], ABI3)
        is_cells = tuple(tag[:2]) == cell_tags or tag[1:2] == ["none"]
        if is_cells and not abi.fits_pythons:
            return cell_tags
    made = " ".join("-".join(tag) for tag in tags) or "no tags"
    if abi.fits_pythons:
        msg = f"the project's backend made a wheel for {made}, but the file has abi = {abi}"
        hint = "let setup.py pass py_limited_api to its extension and to bdist_wheel"
        raise BuildError(msg, hint=hint)
    msg = f"the project's backend made a wheel for {made}, not for {python}"
    raise BuildError(msg, hint="look further up in the log for the Python that it used")


def _read(image: Path, name: str) -> str:
    return (find_dist_info(image) / name).read_text(encoding="utf-8")
