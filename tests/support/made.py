"""Packages as values, for rules, without any file."""

from collections.abc import Iterable, Mapping

from tests.support.contents import contents

from torchyard.checks.expected import Expected
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.rule import PACKAGE_RULES, Hit
from torchyard.checks.subject import Subject
from torchyard.package.contents import Binary, Contents, DeviceCode, PackageFile, VersionNeed

WHEEL = "thing-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
EXPECTED = Expected(
    name="thing",
    version="1.0",
    python="cp312",
    abi="cp312",
    platforms=("manylinux_2_28_x86_64",),
)


def library(
    *needed: str,
    rpath: str = "",
    runpath: str = "$ORIGIN",
    soname: str = "",
    exports: Iterable[str] = (),
    imports: Iterable[str] = (),
    needs: dict[str, str] | None = None,
    device: Iterable[str] = (),
    executable_stack: bool = False,
    text_relocations: bool = False,
    gnu_hash: bool = True,
    build_id: str = "c0ffee",
) -> Binary:
    """A library that needs others; of `needs`, each version with the library that must have it."""
    return Binary(
        format="elf",
        machine="x86_64",
        soname=soname,
        needed=needed,
        rpath=rpath,
        runpath="" if rpath and runpath == "$ORIGIN" else runpath,
        build_id=build_id,
        needs=tuple(VersionNeed(name, version) for version, name in (needs or {}).items()),
        exports=_block(exports),
        imports=_block(imports),
        device=tuple(_code(arch) for arch in device),
        executable_stack=executable_stack,
        text_relocations=text_relocations,
        gnu_hash=gnu_hash,
    )


def _block(names: Iterable[str]) -> bytes:
    return b"".join(f"{name}\0".encode() for name in names)


def _code(arch: str) -> DeviceCode:
    if arch.startswith("gfx"):
        return DeviceCode("hsaco", arch, 1, 100)
    return DeviceCode("ptx" if arch.startswith("compute") else "cubin", arch, 1, 100)


def package(
    files: Mapping[str, Binary | str],
    *,
    requires: Iterable[str] = (),
    name: str = WHEEL,
    kind: str = "wheel",
    texts: Mapping[str, bytes] = {},
) -> Contents:
    """A package with some binaries, and links to others; a wheel says what it requires."""
    members: dict[str, Binary | bytes] = dict(texts)
    members |= {path: what for path, what in files.items() if not isinstance(what, str)}
    if kind == "wheel":
        lines = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
        about = f"Metadata-Version: 2.4\nName: thing\nVersion: 1.0\n{lines}\nAbout it.\n"
        members["thing-1.0.dist-info/METADATA"] = about.encode()
    made = contents(name, kind, members)
    for path, what in files.items():
        if isinstance(what, str):
            made.files[path] = PackageFile(name=path, size=0, link=what)
    return made


def subject_of(
    made: Contents,
    expected: Expected = EXPECTED,
    *,
    others: Iterable[Contents] = (),
    policy: CheckPolicy | None = None,
) -> Subject:
    """A package to look at that should be what is expected."""
    subject = Subject(made, policy or CheckPolicy(), tuple(others))
    subject.expected = expected
    return subject


def hits(rule: str, subject: Subject) -> list[Hit]:
    """Return the findings of one rule."""
    return list(PACKAGE_RULES[rule].find(subject))
