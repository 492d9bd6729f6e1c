"""Pack a directory as a wheel: pack.py DIRECTORY SPEC NAME VERSION TAG."""

import sys
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

folder, spec, name, version, tag = sys.argv[1:]
info = f"{name}-{version}.dist-info"
about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
wheel = f"Wheel-Version: 1.0\nGenerator: pack.py\nRoot-Is-Purelib: false\nTag: {tag}\n"
files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
members = {path.relative_to(Path(folder).parent).as_posix(): path.read_bytes() for path in files}
members[f"{info}/METADATA"] = about.encode()
members[f"{info}/WHEEL"] = wheel.encode()
members[f"{info}/{Path(spec).name}"] = Path(spec).read_bytes()

record = ""
for member, data in members.items():
    digest = urlsafe_b64encode(sha256(data).digest()).decode().rstrip("=")
    record += f"{member},sha256={digest},{len(data)}\n"
members[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()

with ZipFile(f"{name}-{version}-{tag}.whl", "w") as archive:
    for member, data in members.items():
        entry = ZipInfo(member)  # of 1980: the same bytes every time
        entry.compress_type, entry.external_attr = ZIP_DEFLATED, 0o100644 << 16
        archive.writestr(entry, data)
