"""Complete the description of a conda package, where rattler-build's library has no argument."""

import tarfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import msgspec

from torchyard.host.snapshot import EPOCH
from torchyard.host.zstd import compress, decompress
from torchyard.model.conda_output import CondaTests
from torchyard.package.conda.index import INFO

_LEVEL = 19
"""The compression level: the description is small."""

TESTS = f"{INFO}tests/tests.yaml"

Fields = Mapping[str, Mapping[str, object]]
"""Values of JSON files, by file and key."""


def amend(package: Path, fields: Fields, files: Mapping[str, bytes]) -> None:
    """Set fields of JSON files in `info/`, and add files; the installed files are not read."""
    with ZipFile(package, "a") as archive:
        info = archive.infolist()[-1]  # rattler-build writes the description last
        data = compress(_amended(decompress(archive.read(info)), fields, files), _LEVEL)
        archive.filelist.remove(info)
        del archive.NameToInfo[info.filename]
        archive.start_dir = info.header_offset  # the new one replaces it
        for other in archive.filelist:
            other.extra = b""  # rattler-build's are for larger files; zipfile writes its own
        archive.writestr(ZipInfo(info.filename, info.date_time), data, ZIP_STORED)


def _amended(data: bytes, fields: Fields, files: Mapping[str, bytes]) -> bytes:
    out = BytesIO()
    with tarfile.open(fileobj=BytesIO(data)) as old, tarfile.open(fileobj=out, mode="w") as new:
        for name, content in (*_members(old, fields), *files.items()):
            row = tarfile.TarInfo(name)
            row.size, row.mtime = len(content), EPOCH
            new.addfile(row, BytesIO(content))
    return out.getvalue()


def _members(archive: tarfile.TarFile, fields: Fields) -> Iterator[tuple[str, bytes]]:
    for row in archive.getmembers():
        file = archive.extractfile(row)
        content = file.read() if file else b""
        if more := fields.get(row.name):
            known = msgspec.json.decode(content, type=dict[str, object])
            content = msgspec.json.format(msgspec.json.encode({**known, **more}, order="sorted"))
        yield row.name, content


def written_tests(tests: CondaTests) -> bytes:
    """Return tests as rattler-build writes them; JSON is YAML, too.

    Its tests of imports have no requirements, so those that need some are scripts.
    """
    found: list[object] = []
    lines = tests.commands
    if tests.requires:
        imports = (f"python -c 'import {module}'" for module in tests.imports)
        lines = (*imports, *lines)
    elif tests.imports:
        found.append({"python": {"imports": tests.imports, "pip_check": False}})
    if lines:
        needs = {"requirements": {"run": tests.requires}} if tests.requires else {}
        found.append({"script": {"content": lines}, **needs})
    return msgspec.json.format(msgspec.json.encode(found)) + b"\n" if found else b""
