"""The record of a checked package: evidence to keep, without symbols."""

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
    """A program or library, with only the number of its symbols."""

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
    """A package: the promises of its name, its contents, and the findings, worst first.

    `sha256` is the file's; it is empty in a report that is not kept as evidence. `outside` has the
    origin of needed libraries outside of the package: `system`, a project, or "" if unknown.
    `undecided` counts the symbols by the library, or torch, that may define them but is unknown.
    `extension` is the ABI class of a package that uses torch's functions.
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
    return CheckError(msg, hint=f"`torchyard explain rule {rule}` explains it")


def describe_package(subject: Subject, undecided: Mapping[str, int]) -> CheckedPackage:
    """Return a package's contents, without findings."""
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
    """Return a key that sorts `sm_90` before `sm_100`, and PTX after all machine code."""
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
