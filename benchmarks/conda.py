"""Large conda channels, and one more package added to them by each indexer.

python conda.py make FOLDER COUNT         a channel of packages without an index
python conda.py more FOLDER NUMBER        one more package
python conda.py publish CHANNEL FOLDER    a channel of ours with all of these packages
python conda.py add CHANNEL PACKAGE       one more package into a channel of ours
python conda.py rattler FOLDER            the index, by py-rattler's `index_fs`
python conda.py conda-index FOLDER        the index, by conda-index
"""

import io
import os
import sys
import zipfile
from collections.abc import Iterable, Mapping
from functools import partial
from hashlib import md5, sha256
from pathlib import Path

import msgspec

from torchyard.host.zstd import compress, decompress
from torchyard.index.conda.repodata import record_of
from torchyard.index.entry import Entry, State, sort_key
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.channel.layout import PartName, key_of

PART = PartName("conda", "linux-64")
NAMES = 50
AT = "2026-01-01T00:00:00Z"
DEPENDS = (
    *("__glibc >=2.28,<3.0.a0", "_openmp_mutex >=4.5", "filelock", "fsspec", "jinja2"),
    *("libgcc >=14", "libstdcxx >=14", "mkl >=2026.0,<2027.0a0", "networkx", "numpy >=1.23,<3"),
    *("optree >=0.13.0", "python >=3.12,<3.13.0a0", "python_abi 3.12.* *_cp312", "sympy >=1.13.3"),
)
_STAND_IN = {
    "models/version.py": "class VersionOrder(str):\n    __slots__ = ()\n",
    "base/constants.py": "PLATFORM_DIRECTORIES = ('noarch', 'linux-64')\n",
}
"""All that conda-index needs of conda, which is not on PyPI, for what it is asked here."""


def make_package(folder: Path, number: int) -> Path:
    """Make a package with as much metadata as PyTorch's, and no files."""
    name, build = f"package{number % NAMES}", f"cpu_mkl_py312_h{number:07x}_100"
    version = f"2.{number // NAMES}.0"
    stem = f"{name}-{version}-{build}"
    index = {
        "arch": "x86_64",
        "build": build,
        "build_number": 100,
        "constrains": [f"{name}-cpu =={version}", f"{name}-gpu <0.0a0"],
        "depends": [f"lib{name} =={version} {build}", *DEPENDS],
        "license": "BSD-3-Clause",
        "name": name,
        "platform": "linux",
        "subdir": PART.name,
        "timestamp": 1_767_225_600_000 + number,
        "version": version,
    }
    infos = {"index.json": index, "paths.json": {"paths": [], "paths_version": 1}, "about.json": {}}
    path = folder / f"{stem}.conda"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", '{"conda_pkg_format_version":2}')
        archive.writestr(f"pkg-{stem}.tar.zst", _tar({}))
        archive.writestr(f"info-{stem}.tar.zst", _tar(infos))
    return path


def _tar(infos: Mapping[str, object]) -> bytes:
    import tarfile  # noqa: PLC0415 - only here, as it takes a while

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, value in infos.items():
            data = msgspec.json.encode(value)
            member = tarfile.TarInfo(f"info/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return compress(out.getvalue())


def make(folder: Path, count: int) -> None:
    (folder / PART.name).mkdir(parents=True)
    (folder / "noarch").mkdir()
    for number in range(count):
        make_package(folder / PART.name, number)


def add(url: str, packages: Iterable[Path]) -> None:
    """Publish packages without checks: upload their bytes and update the index."""
    channel = Channel.at(url, make=True)
    entries = [_publish_bytes(channel, package) for package in packages]
    reason = ChangeReason(f"add {len(entries)} packages", AT)
    channel.commit({str(PART): partial(_with_entries, entries)}, reason)


def _publish_bytes(channel: Channel, package: Path) -> Entry:
    data = package.read_bytes()
    digest, size = sha256(data).hexdigest(), len(data)
    entry = Entry(
        file=package.name,
        version=package.name.rsplit("-", 2)[1],
        variant="cpu",
        sha256=digest,
        size=size,
        uploaded=AT,
        cell="package-2.0.0/linux-x86_64/cpu-mkl/cp312/conda",
        record=record_of(
            _index_of(data),
            sha256=digest,
            size=size,
            md5=md5(data, usedforsecurity=False).hexdigest(),
        ),
    )
    channel.objects.create(key_of(PART, entry), data)
    return entry


def _index_of(data: bytes) -> bytes:
    """Return the `info/index.json` of our package: the first member of its tar archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (info,) = (name for name in archive.namelist() if name.startswith("info-"))
        inside = decompress(archive.read(info))
    size = int(inside[124:135], 8)
    return inside[512 : 512 + size]


def _with_entries(entries: Iterable[Entry], state: State) -> State:
    merged = tuple(sorted((*state.entries, *entries), key=sort_key))
    return msgspec.structs.replace(state, entries=merged)


def rattler(folder: Path) -> None:
    import asyncio  # noqa: PLC0415 - only here, as it takes a while

    from rattler.index import index_fs  # noqa: PLC0415

    asyncio.run(index_fs(folder, write_zst=True, write_shards=True))
    sys.stdout.flush()
    os._exit(0)  # it may crash when its process ends


def conda_index(folder: Path) -> None:
    """Exec conda-index, installed once, to write the same files as the others."""
    import subprocess  # noqa: PLC0415 - only here, as it takes a while
    from tempfile import gettempdir  # noqa: PLC0415

    home = Path(gettempdir(), "torchyard-bench", "conda-index")
    if not home.exists():
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--target",
            str(home),
            "conda-index==0.13.0",
        ]
        subprocess.run(command, check=True, stdout=sys.stderr)
        for path, text in _STAND_IN.items():
            file = home / "conda" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    without = ("bz2", "rss", "channeldata", "run-exports", "current-repodata")
    options = ["--zst", "--write-shards", *(f"--no-{name}" for name in without)]
    argv = [sys.executable, "-m", "conda_index", *options, str(folder)]
    os.execve(sys.executable, argv, {**os.environ, "PYTHONPATH": str(home)})  # noqa: S606 - ours


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", folder, count]:
            make(Path(folder), int(count))
        case ["more", folder, number]:
            make_package(Path(folder, PART.name), int(number))
        case ["publish", url, folder]:
            add(url, sorted(Path(folder, PART.name).glob("*.conda")))
        case ["add", url, package]:
            add(url, [Path(package)])
        case ["rattler", folder]:
            rattler(Path(folder))
        case ["conda-index", folder]:
            conda_index(Path(folder))
        case _:
            sys.exit(__doc__)
