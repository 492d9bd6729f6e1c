"""What a check leaves of a package: evidence to be kept, without every symbol."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from torchyard.checks.compat.abi import MeasuredAbi, abi_of
from torchyard.checks.loader.resolve import outside_origins
from torchyard.checks.rule import Finding, Severity
from torchyard.checks.subject import Subject
from torchyard.errors import CheckError
from torchyard.model.values import Reported
from torchyard.package.contents import Binary, Contents, DeviceCode, PackageFile


class CheckedLibrary(Reported, kw_only=True):
    """A program or library; of its symbols only their number."""

    member: str
    format: Literal["elf", "mach-o", "pe"]
    machine: str
    bytes: int
    stored_bytes: int
    sha256: str
    soname: str
    needed: Sequence[str]
    rpath: str
    runpath: str
    build_id: str
    version_needs: dict[str, list[str]]
    version_defines: Sequence[str]
    exports: int
    imports: int
    sections: dict[str, int]
    device: Sequence[DeviceCode]
    minimum_system: str


class CheckedPackage(Reported, kw_only=True):
    """A package: what its name promises, what is in it, and what was found, the worst first.

    `sha256` is that of the file; it is empty in a report that is not kept as evidence. `outside`
    names the origin of needed libraries that are not in the package: `system`, or a project;
    it is empty if there is none. `undecided` says how many symbols need a library, or torch, whose
    symbols are not known here. `extension` is the ABI class of a package that uses torch's
    functions.
    """

    file: str
    kind: str
    sha256: str = ""
    bytes: int
    unpacked_bytes: int
    files: int
    name: str
    release: str
    python: str
    abi: str
    platforms: Sequence[str]
    compute: str
    extension: MeasuredAbi | None
    device: list[DeviceCode]
    libraries: list[CheckedLibrary]
    outside: dict[str, str]
    undecided: Mapping[str, int]
    findings: tuple[Finding, ...] = ()

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity is Severity.ERROR]


def findings_error(packages: Iterable[CheckedPackage]) -> CheckError | None:
    """Return the error of a check that found errors."""
    bad = [package for package in packages if package.errors]
    if not bad:
        return None
    msg = f"errors were found in {', '.join(package.file for package in bad)}"
    rule = min(finding.rule for package in bad for finding in package.errors)
    return CheckError(msg, hint=f"`torchyard explain rule {rule}` says more")


def describe_package(subject: Subject, undecided: Mapping[str, int]) -> CheckedPackage:
    """Return what is in a package, without findings."""
    contents, expected = subject.contents, subject.expected
    files = contents.files.values()
    return CheckedPackage(
        file=contents.file_name,
        kind=contents.format,
        bytes=contents.size,
        unpacked_bytes=sum(file.size for file in files),
        files=len(files),
        name=expected.name,
        release=expected.version,
        python=expected.python,
        abi=expected.abi,
        platforms=expected.platforms,
        compute=expected.compute,
        extension=abi_of(subject),
        device=_device_of(contents),
        libraries=[_library(file, file.binary) for file in files if file.binary is not None],
        outside=outside_origins(subject),
        undecided=undecided,
    )


def _device_of(contents: Contents) -> list[DeviceCode]:
    """Return the device code of all libraries together."""
    programs: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    for file in contents.files.values():
        for code in file.binary.device if file.binary else ():
            programs[code.kind, code.arch] += code.programs
            sizes[code.kind, code.arch] += code.size
    return [
        DeviceCode(kind, arch, programs[kind, arch], size)
        for (kind, arch), size in sorted(sizes.items(), key=lambda item: natural(item[0][1]))
    ]


def natural(arch: str) -> tuple[int, str]:
    """Sort `sm_90` before `sm_100`, and PTX (`compute_90`) behind all machine code."""
    number = re.search(r"_(\d+)", arch)
    return int(number[1]) + (arch[0] == "c") * 1000 if number else 0, arch


def _library(file: PackageFile, binary: Binary) -> CheckedLibrary:
    needs: dict[str, list[str]] = {}
    for library, version in binary.needs:
        needs.setdefault(library, []).append(version)
    return CheckedLibrary(
        member=file.name,
        format=binary.format,
        machine=binary.machine,
        bytes=file.size,
        stored_bytes=file.stored,
        sha256=file.digest,
        soname=binary.soname,
        needed=binary.needed,
        rpath=binary.rpath,
        runpath=binary.runpath,
        build_id=binary.build_id,
        version_needs=needs,
        version_defines=binary.defines,
        exports=binary.exports.count(b"\0"),
        imports=binary.imports.count(b"\0"),
        sections=binary.sections,
        device=binary.device,
        minimum_system=binary.minimum_system,
    )
