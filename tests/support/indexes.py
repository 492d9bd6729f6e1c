"""A valid channel with wheels, conda packages and zips, to audit, break or mirror."""

import io
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.support.channels import LATER, NOW
from tests.support.conda import make_package

from torchyard.publish.channel.channel import Channel
from torchyard.publish.publish import publish
from torchyard.publish.staged import read_staged


class Kind(NamedTuple):
    """The metadata of a wheel."""

    name: str
    version: str = "1.0"
    tag: str = "py3-none-any"
    requires: tuple[str, ...] = ()
    python: str = ">=3.11"


CPU, CUDA = "1.0+cpu", "1.0+cu130"
WHEELS = (
    Kind("thing", CPU, "cp311-cp311-manylinux_2_28_x86_64", ("other>=1",)),
    Kind("thing", CPU, "cp312-cp312-manylinux_2_28_x86_64", ("other>=1",)),
    Kind("thing", CUDA, "cp312-cp312-manylinux_2_28_x86_64", ("other>=1",)),
    Kind("other"),
    Kind("two_words"),
)
ZIPS = ("0.9+cpu", CPU, CUDA)


def metadata(kind: Kind) -> str:
    needs = "".join(f"Requires-Dist: {name}\n" for name in kind.requires)
    head = f"Metadata-Version: 2.1\nName: {kind.name}\nVersion: {kind.version}\n"
    return f"{head}Requires-Python: {kind.python}\n{needs}"


def make_wheel(folder: Path, kind: Kind, content: bytes = b"x = 1\n") -> Path:
    """A real wheel with one module, stored as it is."""
    stem = f"{kind.name}-{kind.version}"
    files = {
        f"{kind.name}/__init__.py": content,
        f"{stem}.dist-info/METADATA": metadata(kind).encode(),
        f"{stem}.dist-info/WHEEL": f"Wheel-Version: 1.0\nTag: {kind.tag}\n".encode(),
        f"{stem}.dist-info/RECORD": b"",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}-{kind.tag}.whl"
    path.write_bytes(out.getvalue())
    return path


def make_zip(folder: Path, version: str) -> Path:
    """A zip for C++ with one file."""
    path = folder / f"libthing-{version}.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("libthing/build-version"), f"{version}\n")
    return path


def make_channel(root: Path, packages: Iterable[Path]) -> Channel:
    """Publish packages as they are."""
    channel = Channel.at(str(root), make=True)
    head = channel.head()
    publish(channel, head, read_staged(packages, head.grouping, NOW), LATER)
    return channel


def good_channel(folder: Path) -> Path:
    """A channel without faults."""
    root, packages = folder / "channel", folder / "packages"
    wheels = [make_wheel(packages, kind) for kind in WHEELS]
    low = make_package(packages, "low", "1.0", "0")
    high = make_package(packages, "high", "1.0", "0", depends=["low >=1", "__glibc >=2.17"])
    zips = [make_zip(packages, version) for version in ZIPS]
    make_channel(root, [*wheels, low, high, *zips])
    return root
