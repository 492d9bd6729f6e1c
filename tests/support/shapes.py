"""Packages as values, for tests that need no archive."""

from collections.abc import Iterable

from torchyard.package.contents import Binary, Contents, DeviceCode, PackageFile, VersionNeed

METADATA = b"Metadata-Version: 2.4\nName: torch\nVersion: 2.13.0\n"
WHEEL = "torch-2.13.0-cp312-cp312-manylinux_2_28_x86_64.whl"


def blob(*names: str) -> bytes:
    """Return names of symbols as a binary stores them."""
    return b"".join(name.encode() + b"\0" for name in names)


def library(
    name: str,
    *needed: str,
    exports: Iterable[str] = (),
    imports: Iterable[str] = (),
    needs: tuple[VersionNeed, ...] = (),
    defines: tuple[str, ...] = (),
    device: tuple[DeviceCode, ...] = (),
    size: int = 10**6,
    machine: str = "x86_64",
    runpath: str = "$ORIGIN",
    digest: str = "",
) -> PackageFile:
    """A library at a place in a package, named after its file."""
    base = name.rpartition("/")[2]
    binary = Binary(
        format="elf",
        machine=machine,
        soname=base if base.startswith("lib") else "",
        needed=needed,
        runpath=runpath,
        exports=blob(*exports),
        imports=blob(*imports),
        needs=needs,
        defines=defines,
        sections={".text": size // 2},
        device=device,
    )
    return PackageFile(name=name, size=size, stored=size // 4, digest=digest, binary=binary)


def text(name: str, size: int = 1000, digest: str = "") -> PackageFile:
    return PackageFile(name=name, size=size, stored=size // 2, digest=digest or name)


def package(
    *files: PackageFile, name: str = WHEEL, kind: str = "wheel", metadata: bytes = METADATA
) -> Contents:
    """A package with these files, and METADATA if it is a wheel."""
    texts = {}
    if kind == "wheel":
        place = f"{'-'.join(name.split('-')[:2])}.dist-info/METADATA"
        texts[place] = metadata
        files = (*files, text(place, len(metadata), digest=metadata.decode()))
    return Contents(
        file_name=name,
        format=kind,
        size=sum(file.stored for file in files),
        files={file.name: file for file in files},
        texts=texts,
    )
