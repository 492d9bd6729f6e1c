"""Contents of packages as values, for rules, without any archive."""

from collections.abc import Mapping
from datetime import date
from hashlib import sha256

import msgspec

from torchyard.checks.check import apply_rules
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.rule import Finding
from torchyard.package.contents import Binary, Contents, Fault, PackageFile
from torchyard.package.wheel.dist_info import record
from torchyard.package.zip.writer import Written

TODAY = date(2026, 11, 15)
WHEEL_NAME = "tiny-1.2.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl"
ABOUT = "tiny-1.2.0+cpu.dist-info"
METADATA = (
    b"Metadata-Version: 2.4\nName: tiny\nVersion: 1.2.0+cpu\nRequires-Dist: numpy>=2\n\nText.\n"
)
WHEEL = b"""\
Wheel-Version: 1.0
Root-Is-Purelib: false
Tag: cp312-cp312-manylinux_2_28_x86_64
"""
VERSION = b"__version__ = '1.2.0+cpu'\ngit_version = '704754640b09a082545e24a58c2425d9a1c18427'\n"
LIBRARY = Binary(format="elf", machine="x86_64", build_id="0123", exports=b"PyInit__C\0")
MODULE = "tiny/_C.cpython-312-x86_64-linux-gnu.so"

GOOD_WHEEL: dict[str, bytes | Binary] = {
    "tiny/__init__.py": b"",
    "tiny/version.py": VERSION,
    MODULE: LIBRARY,
    "tiny/share/cmake/TinyConfig.cmake": b"set(DIR ${CMAKE_CURRENT_LIST_DIR})",
    f"{ABOUT}/METADATA": METADATA,
    f"{ABOUT}/WHEEL": WHEEL,
}

CONDA_NAME = "tiny-1.2.0-cpu_openblas_py312_h964da31_0.conda"
SITE = "lib/python3.12/site-packages"
INDEX = {
    "name": "tiny",
    "version": "1.2.0",
    "build": "cpu_openblas_py312_h964da31_0",
    "subdir": "linux-64",
    "depends": ["python >=3.12,<3.13.0a0", "python_abi 3.12.* *_cp312"],
    "license": "MIT",
}


def member(name: str, content: bytes | Binary = b"", size: int = 0) -> PackageFile:
    """Return a file with its digest; that of a library is derived from its name."""
    data = content if isinstance(content, bytes) else name.encode()
    return PackageFile(
        name=name,
        size=size or len(data),
        stored=size or len(data),
        digest=sha256(data).hexdigest(),
        binary=None if isinstance(content, bytes) else content,
    )


def wheel(
    changes: Mapping[str, bytes | Binary | None] = {},
    *,
    name: str = WHEEL_NAME,
    listed: bytes | None = None,
    faults: tuple[Fault, ...] = (),
) -> Contents:
    """A good wheel with some members added, replaced or (None) removed; RECORD is written last."""
    given = {**GOOD_WHEEL, **changes}
    members = {name: content for name, content in given.items() if content is not None}
    own = f"{ABOUT}/RECORD"
    if own not in changes:
        files = [member(name, content) for name, content in members.items()]
        rows = [Written(file.name, file.size, bytes.fromhex(file.digest)) for file in files]
        members[own] = record(rows, own).encode() if listed is None else listed
    return contents(name, "wheel", members, faults)


def conda(
    changes: Mapping[str, bytes | Binary] = {},
    *,
    name: str = CONDA_NAME,
    index: Mapping[str, object] = INDEX,
    paths: bytes | None = None,
) -> Contents:
    """A good conda package with some members added or replaced; its list is written last."""
    members: dict[str, bytes | Binary] = {
        f"{SITE}/tiny/version.py": VERSION,
        f"{SITE}/{MODULE}": LIBRARY,
        **changes,
    }
    files = [member(name, content) for name, content in sorted(members.items())]
    rows = [{"_path": f.name, "sha256": f.digest, "size_in_bytes": f.size} for f in files]
    members["info/index.json"] = msgspec.json.encode(index)
    members["info/licenses/LICENSE"] = b"Use it.\n"
    members["info/tests/tests.yaml"] = b"- script: tiny\n"
    members["info/paths.json"] = msgspec.json.encode({"paths": rows}) if paths is None else paths
    return contents(name, "conda", members)


def contents(
    name: str,
    kind: str,
    members: Mapping[str, bytes | Binary],
    faults: tuple[Fault, ...] = (),
) -> Contents:
    """Return a package with these members; all but libraries are kept as texts."""
    return Contents(
        file_name=name,
        format=kind,
        size=1000,
        files={name: member(name, content) for name, content in members.items()},
        texts={name: text for name, text in members.items() if isinstance(text, bytes)},
        faults=faults,
    )


def findings(
    package: Contents, *others: Contents, policy: CheckPolicy | None = None
) -> tuple[Finding, ...]:
    """Return the findings in the first of some packages, except on bills of materials."""
    usual = CheckPolicy(severity={"sbom-missing": "off"})
    return apply_rules([package, *others], policy or usual, TODAY)[0].findings


def found_by(rule: str, package: Contents, *others: Contents) -> list[str]:
    """Return the findings of one rule in the first of some packages: `member: what`."""
    found = findings(package, *others, policy=CheckPolicy())
    return [f"{finding.member}: {finding.what}" for finding in found if finding.rule == rule]
