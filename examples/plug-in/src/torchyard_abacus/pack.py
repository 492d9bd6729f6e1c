"""What the package step of recipe `pure` runs: write a wheel."""

import sys
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import msgspec

from torchyard.model.job_spec import SPEC_FILE, JobSpec
from torchyard.package.versions import local_version
from torchyard.package.wheel.name import wheel_name, wheel_stem, wheel_tags


def pack(spec: Path, source: Path, out: Path) -> Path:
    """Write the wheel that a job asks for; the job goes with it, so that it can be made again."""
    task = msgspec.json.decode(spec.read_bytes(), type=JobSpec).task
    name, version = task.facts["name"], local_version(task.facts["version"], task.facts["compute"])
    tags, platform = wheel_tags(task.facts["python"]), task.text("platform_tag")
    info = f"{wheel_stem(name, version)}.dist-info"
    members = {
        path.relative_to(source).as_posix(): path.read_bytes()
        for path in sorted(source.rglob("*"))
        if path.is_file()
    }
    members |= {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: torchyard-abacus\nRoot-Is-Purelib: false\n"
            f"Tag: {tags.python}-{tags.abi}-{platform}\n"
        ).encode(),
        f"{info}/{SPEC_FILE}": spec.read_bytes(),
    }
    record = "".join(f"{member},{_digest(data)},{len(data)}\n" for member, data in members.items())
    members[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = out / wheel_name(name, version, tags, platform)
    with ZipFile(wheel, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return wheel


def _digest(data: bytes) -> str:
    return f"sha256={urlsafe_b64encode(sha256(data).digest()).rstrip(b'=').decode()}"


if __name__ == "__main__":
    pack(*map(Path, sys.argv[1:]))
