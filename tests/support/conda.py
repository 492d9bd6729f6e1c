"""A conda channel on disk, and prefixes installed from it alone."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import md5, sha256
from pathlib import Path
from typing import NamedTuple

from rattler_build import ArchiveType, assemble_package
from tests.support.channels import LATER, NOW, adding

from torchyard.compute.registry import platform_for
from torchyard.errors import HostError
from torchyard.index.conda.repodata import record_of
from torchyard.index.entry import Entry
from torchyard.package.conda.index import INDEX, RUN_EXPORTS
from torchyard.package.conda.table import load_conda_table
from torchyard.package.read import read_package
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.layout import PartName, key_of
from torchyard.smoke.conda import UNSOLVABLE, index_channel
from torchyard.smoke.conda import solve as solve_for

SUBDIR = "linux-64"
SYSTEM = {"__glibc": "2.36", "__unix": "0", "__linux": "6.1"}
"""The virtual packages of a machine that has no GPU."""

GPU = {**SYSTEM, "__cuda": "13.0"}

_LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "test", "tests", "idlelib", "tkinter", "ensurepip", "site-packages", "config-*"
)


class UnsolvableError(Exception):
    """No set of packages satisfies the request."""


class Installed(NamedTuple):
    """The solver's choice: builds by name."""

    builds: Mapping[str, str]


def find_python(tag: str) -> Path | None:
    """Return the prefix of a real interpreter: that of the tests, or one of pyenv's."""
    version = f"{tag[2]}.{tag[3:]}"
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places = [Path(sys.base_prefix), *sorted(root.glob(f"versions/{version}.*"))]
    found = [place for place in places if list(place.glob(f"lib/libpython{version}.so.*"))]
    return found[0] if found else None


def make_python_package(tag: str, out: Path) -> Path:
    """Pack a real interpreter as `python`, with the `python_abi` that conda-forge has beside it."""
    source = find_python(tag)
    assert source is not None, f"no {tag} with a shared library here"
    version = f"{tag[2]}.{tag[3:]}"
    tree = out / f".{tag}"
    shutil.copytree(
        source / f"lib/python{version}", tree / f"lib/python{version}", ignore=_LEFT_OUT
    )
    shutil.copytree(source / f"include/python{version}", tree / f"include/python{version}")
    for library in source.glob(f"lib/libpython{version}.so.*"):
        shutil.copy(library, tree / "lib")
    (tree / "bin").mkdir()
    program = shutil.copy(source / f"bin/python{version}", tree / "bin")
    subprocess.run(["patchelf", "--set-rpath", "$ORIGIN/../lib", program], check=True)
    (tree / "bin/python").symlink_to(f"python{version}")
    full = subprocess.run(
        [
            source / f"bin/python{version}",
            "-c",
            "import platform; print(platform.python_version())",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    abi = make_package(out, "python_abi", version, f"0_{tag}")
    assert abi.exists()
    package = make_package(
        out, "python", full, "0_cpython", tree, depends=[f"python_abi {version}.*"]
    )
    shutil.rmtree(tree)
    return package


def make_package(
    out: Path,
    name: str,
    version: str,
    build: str,
    tree: Path | None = None,
    *,
    depends: Sequence[str] = (),
    number: int = 0,
    archive: ArchiveType = ArchiveType.Conda,
) -> Path:
    """Pack a tree, or nothing."""
    empty = out / ".empty"
    empty.mkdir(parents=True, exist_ok=True)
    return assemble_package(
        name,
        version,
        SUBDIR,
        build,
        out,
        files_dir=tree or empty,
        depends=depends,
        build_number=number,
        compression_level=1,
        archive_type=archive,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
    ).path


def make_runtimes(out: Path) -> None:
    """Pack nothing as the compiler's runtime libraries, so that the machine's are used."""
    for row in load_conda_table().runtimes:
        make_package(out, row.package, "15.2.0", "0")


def make_channel(channel: Path, tags: Sequence[str]) -> None:
    """Make a channel with all dependencies of the sample project's packages."""
    for tag in tags:
        make_python_package(tag, channel / SUBDIR)
    make_package(channel / SUBDIR, "typing_extensions", "4.16.0", "0")
    make_runtimes(channel / SUBDIR)
    index(channel)


def index(channel: Path) -> None:
    """Write the index of a channel, whose packages are in `channel / SUBDIR`."""
    index_channel(channel)
    listed = json.loads((channel / SUBDIR / "repodata.json").read_bytes())["packages.conda"]
    assert set(listed) == {path.name for path in (channel / SUBDIR).glob("*.conda")}


def solve(channel: Path, specs: Sequence[str], system: Mapping[str, str] = SYSTEM) -> Installed:
    """Choose packages, and install none."""
    return solve_and_install(channel, specs, None, system)


def solve_and_install(
    channel: Path,
    specs: Sequence[str],
    prefix: Path | None,
    system: Mapping[str, str] = SYSTEM,
) -> Installed:
    """Choose packages and install them into a prefix."""
    sources, cache = [channel.absolute().as_uri()], channel.absolute() / ".cache"
    try:
        chosen = solve_for(sources, specs, prefix, cache, system, exact=True)
        return Installed({name: found.build for name, found in chosen.items()})
    except HostError as error:
        if error.reason == UNSOLVABLE:
            raise UnsolvableError(str(error)) from error
        raise


def publish(channel: Channel, packages: Collection[Path]) -> None:
    """Put packages into a channel of ours."""
    part = PartName("conda", SUBDIR)
    entries = [_entry(package) for package in packages]
    for entry, package in zip(entries, packages, strict=True):
        channel.objects.create(key_of(part, entry), package.read_bytes())
    channel.commit({str(part): adding(*entries)}, LATER)


def _entry(package: Path) -> Entry:
    data, texts = package.read_bytes(), read_package(package).texts
    digest = sha256(data).hexdigest()
    record = record_of(
        texts[INDEX],
        sha256=digest,
        md5=md5(data, usedforsecurity=False).hexdigest(),
        size=len(data),
        run_exports=texts.get(RUN_EXPORTS, b""),
    )
    return Entry(
        file=package.name,
        version=package.name.rsplit("-", 2)[1],
        variant=compute_of(package.name) or "cpu",
        sha256=digest,
        size=len(data),
        uploaded=NOW,
        record=record,
    )


def compute_of(file: str) -> str:
    return platform_for("cu130").compute_of_conda_build(file.rsplit("-", 1)[1])


def run_exports(package: Path) -> list[str]:
    """Return the dependencies of packages that are built against this one."""
    exports = read_package(package).texts.get(RUN_EXPORTS, b"{}")
    return list(json.loads(exports).get("weak", ()))


if __name__ == "__main__":
    known = ("cp310", "cp311", "cp312", "cp313")
    make_channel(Path(sys.argv[1]), [tag for tag in known if find_python(tag)])
