"""What `torchyard check --json` prints: evidence to be kept, without every symbol."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Literal

from torchyard.checks.check import Checked
from torchyard.checks.compat.abi import MeasuredAbi, abi_of
from torchyard.checks.loader.resolve import outside_origins
from torchyard.checks.policies import policy_digest
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.rule import Finding, Rule, Severity
from torchyard.checks.subject import Subject
from torchyard.model.values import Reported
from torchyard.package.contents import Binary, Contents, PackageFile
from torchyard.version import __version__


class DeviceDocument(Reported, kw_only=True):
    """Programs for one architecture of GPUs."""

    kind: Literal["cubin", "ptx", "hsaco"]
    arch: str
    programs: int
    bytes: int


class LibraryDocument(Reported, kw_only=True):
    """A program or library; of its symbols only their number."""

    member: str
    format: Literal["elf", "mach-o", "pe"]
    machine: str
    bytes: int
    stored_bytes: int
    sha256: str
    soname: str
    needed: list[str]
    rpath: str
    runpath: str
    build_id: str
    version_needs: dict[str, list[str]]
    version_defines: list[str]
    exports: int
    imports: int
    sections: dict[str, int]
    device: list[DeviceDocument]
    minimum_system: str


class PackageDocument(Reported, kw_only=True):
    """A package: what its name promises, what is in it, and what was found.

    `sha256` is that of the file; it is empty in a report that is not kept as evidence. `outside`
    names the origin of needed libraries that are not in the package: `system`, or a project;
    it is empty if there is none. `undecided` says how many symbols need a library, or torch, whose
    symbols are not known here. `extension` is the ABI class of a package that uses torch's
    functions.
    """

    file: str
    kind: str
    sha256: str
    bytes: int
    unpacked_bytes: int
    files: int
    name: str
    release: str
    python: str
    abi: str
    platforms: list[str]
    compute: str
    extension: MeasuredAbi | None
    device: list[DeviceDocument]
    libraries: list[LibraryDocument]
    outside: dict[str, str]
    undecided: dict[str, int]
    findings: list[Finding]


class CheckDocument(Reported, kw_only=True):
    """`torchyard check --json`: `findings` counts them by severity, over all packages.

    `policy_digest` is that of what the policy says, whatever it is called.
    """

    version: Literal[1] = 1
    torchyard: str
    policy: str
    policy_digest: str
    date: str
    findings: dict[str, int]
    packages: list[PackageDocument]


class RuleDocument(Reported, kw_only=True):
    """A rule, and its page."""

    id: str
    severity: Severity
    reason: str
    page: str


class RulesDocument(Reported, kw_only=True):
    """`torchyard explain rule --json`: all rules, or the one that is asked for."""

    version: Literal[1] = 1
    rules: list[RuleDocument]


def check_document(
    checked: Sequence[Checked],
    policy: CheckPolicy,
    policy_name: str,
    today: date,
    digests: Sequence[str] = (),
) -> CheckDocument:
    """Describe packages that were checked together; the policy's name is for the reader."""
    contents = [one.contents for one in checked]
    named = dict(enumerate(digests))
    return CheckDocument(
        torchyard=__version__,
        policy=policy_name,
        policy_digest=policy_digest(policy),
        date=today.isoformat(),
        findings=_counts(finding for one in checked for finding in one.findings),
        packages=[
            _package(
                Subject(one, policy, (*contents[:i], *contents[i + 1 :]), checked[i].spec),
                checked[i],
                named.get(i, ""),
            )
            for i, one in enumerate(contents)
        ],
    )


def _counts(findings: Iterable[Finding]) -> dict[str, int]:
    counts = Counter(finding.severity for finding in findings)
    return {severity.value: counts[severity] for severity in Severity}


def _package(subject: Subject, checked: Checked, sha256: str) -> PackageDocument:
    contents, expected = subject.contents, subject.expected
    abi = abi_of(subject)
    libraries = [
        _library(file, file.binary) for file in contents.files.values() if file.binary is not None
    ]
    return PackageDocument(
        file=contents.file_name,
        kind=contents.format,
        sha256=sha256,
        bytes=contents.size,
        unpacked_bytes=sum(file.size for file in contents.files.values()),
        files=len(contents.files),
        name=expected.name,
        release=expected.version,
        python=expected.python,
        abi=expected.abi,
        platforms=list(expected.platforms),
        compute=expected.compute,
        extension=abi,
        device=_device_of(contents),
        libraries=libraries,
        outside=outside_origins(subject),
        undecided=dict(checked.undecided),
        findings=list(checked.findings),
    )


def _device_of(contents: Contents) -> list[DeviceDocument]:
    """The device code of all libraries together."""
    programs: Counter[tuple[Literal["cubin", "ptx", "hsaco"], str]] = Counter()
    sizes: Counter[tuple[Literal["cubin", "ptx", "hsaco"], str]] = Counter()
    for file in contents.files.values():
        for code in file.binary.device if file.binary else ():
            programs[code.kind, code.arch] += code.programs
            sizes[code.kind, code.arch] += code.size
    return [
        DeviceDocument(kind=kind, arch=arch, programs=programs[kind, arch], bytes=size)
        for (kind, arch), size in sorted(sizes.items(), key=lambda item: natural(item[0][1]))
    ]


def natural(arch: str) -> tuple[int, str]:
    """Sort `sm_90` before `sm_100`, and PTX (`compute_90`) behind all machine code."""
    number = re.search(r"_(\d+)", arch)
    return int(number[1]) + (arch[0] == "c") * 1000 if number else 0, arch


def _library(file: PackageFile, binary: Binary) -> LibraryDocument:
    needs: dict[str, list[str]] = {}
    for library, version in binary.needs:
        needs.setdefault(library, []).append(version)
    return LibraryDocument(
        member=file.name,
        format=binary.format,
        machine=binary.machine,
        bytes=file.size,
        stored_bytes=file.stored,
        sha256=file.digest,
        soname=binary.soname,
        needed=list(binary.needed),
        rpath=binary.rpath,
        runpath=binary.runpath,
        build_id=binary.build_id,
        version_needs=needs,
        version_defines=list(binary.defines),
        exports=binary.exports.count(b"\0"),
        imports=binary.imports.count(b"\0"),
        sections=binary.sections,
        device=[
            DeviceDocument(kind=code.kind, arch=code.arch, programs=code.programs, bytes=code.size)
            for code in binary.device
        ],
        minimum_system=binary.minimum_system,
    )


def rules_document(rules: Iterable[Rule]) -> RulesDocument:
    return RulesDocument(
        rules=[
            RuleDocument(id=rule.id, severity=rule.severity, reason=rule.reason, page=rule.page)
            for rule in rules
        ]
    )
