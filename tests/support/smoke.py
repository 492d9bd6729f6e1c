"""Packages that pass or fail smoke tests."""

import re
import shutil
import subprocess
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

DIST = "demo_thing"


def make_wheel(
    folder: Path,
    files: Mapping[str, str] | None = None,
    *,
    version: str = "1.0",
    requires: str = "",
    tag: str = "py3-none-any",
    dist: str = DIST,
) -> Path:
    """A pure wheel of one module, with whatever files are given in place of its own."""
    info = f"{dist}-{version}.dist-info"
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    members = {
        f"{dist}/__init__.py": f'__version__ = "{version}"\n',
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {dist}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n",
        **(files or {}),
    }
    path = folder / f"{dist}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        rows = []
        for name, text in members.items():
            archive.writestr(name, text)
            rows.append(f"{name},{_digest(text.encode())},{len(text.encode())}")
        archive.writestr(f"{info}/RECORD", "\n".join((*rows, f"{info}/RECORD,,\n")))
    return path


def _digest(content: bytes) -> str:
    return f"sha256={urlsafe_b64encode(sha256(content).digest()).decode().rstrip('=')}"


def change_wheel(wheel: Path, folder: Path, changes: Mapping[str, Path | None]) -> Path:
    """A copy of a wheel in which some members are others, or are not there; RECORD is right."""
    made = folder / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made, "w", allowZip64=True) as new:
        for info in old.infolist():
            if info.filename in changes:
                replaced = changes[info.filename]
                if replaced is not None:
                    new.write(replaced, info.filename)
            elif info.filename.endswith(".dist-info/RECORD"):
                new.writestr(info.filename, _record(old.read(info).decode(), changes))
            else:
                with old.open(info) as source, new.open(info.filename, "w") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
    return made


def _record(text: str, changes: Mapping[str, Path | None]) -> str:
    rows = []
    for line in text.splitlines():
        name = line.rsplit(",", 2)[0].strip('"')
        replaced = changes.get(name)
        if replaced is not None:
            content = replaced.read_bytes()
            rows.append(f"{name},{_digest(content)},{len(content)}")
        elif name not in changes:
            rows.append(line)
    return "\n".join((*rows, ""))


def extract(wheel: Path, member: str, folder: Path) -> Path:
    """One member of a wheel, as a file."""
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(member, folder))


def compile_stub(folder: Path, name: str, code: str, *words: str) -> Path:
    """A shared library of a few lines."""
    source = folder / f"{re.sub(r'[^a-z0-9]', '_', name)}.cpp"
    source.write_text(code, encoding="utf-8")
    made = folder / name
    soname = f"-Wl,-soname,{name}"
    argv = ["c++", "-shared", "-fPIC", soname, *words, "-o", str(made), str(source)]
    subprocess.run(argv, check=True)
    return made
