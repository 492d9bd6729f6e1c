"""A separate program that uses py-rattler, which may crash at exit.

The caller reads its output and ignores its exit code: after success, the last line is `done`.
"""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import rattler

DONE = "done"


async def _index(channel: str) -> None:
    from rattler.index import index_fs  # noqa: PLC0415 - only in the child

    await index_fs(Path(channel), write_shards=False)


async def _install(text: str) -> None:
    import rattler  # noqa: PLC0415 - only in the child
    from rattler.exceptions import SolverError  # noqa: PLC0415

    asked = json.loads(text)
    system = asked["system"]
    if not asked["exact"]:
        found = [package.into_generic() for package in rattler.VirtualPackage.detect()]
        system = system | {package.name.normalized: str(package.version) for package in found}
    cache = Path(asked["cache"])
    try:
        records = await rattler.solve(
            [rattler.Channel(channel) for channel in asked["channels"]],
            asked["specs"],
            gateway=rattler.Gateway(cache_dir=cache / "repodata"),
            platforms=[rattler.Subdir.current(), "noarch"],
            virtual_packages=_virtual(system),
        )
    except SolverError as error:
        _print({"error": str(error)})
        return
    if asked["prefix"]:
        await rattler.install(records, asked["prefix"], cache_dir=cache, show_progress=False)
    chosen = {r.name.normalized: (str(r.version), str(r.build)) for r in records}
    _print({"chosen": chosen})


def _virtual(system: Mapping[str, str]) -> "list[rattler.GenericVirtualPackage]":
    import rattler  # noqa: PLC0415 - as above

    return [
        rattler.GenericVirtualPackage(
            rattler.PackageName(name), rattler.Version(version), rattler.BuildString("0")
        )
        for name, version in system.items()
    ]


async def _lock(text: str) -> None:
    """Solve environments, and write a lock of them; prefer the packages of another lock."""
    import rattler  # noqa: PLC0415 - as above
    from rattler.exceptions import SolverError  # noqa: PLC0415
    from rattler.lock import LockChannel, LockFile, LockPlatform  # noqa: PLC0415

    asked = json.loads(text)
    platform = LockPlatform(asked["subdir"])
    preferred = LockFile.from_path(Path(asked["like"])) if asked["like"] else None
    config = rattler.ChannelConfig(asked["alias"])
    channels = [rattler.Channel(channel, config) for channel in asked["channels"]]
    lock = LockFile([platform])
    gateway = rattler.Gateway(cache_dir=Path(asked["cache"]) / "repodata")
    for name, specs in asked["environments"].items():
        known = preferred.environment(name) if preferred else None
        records = known.conda_repodata_records().get(asked["subdir"]) if known else None
        try:
            solved = await rattler.solve(
                channels,
                specs,
                gateway=gateway,
                platforms=[asked["subdir"], "noarch"],
                locked_packages=records or [],
                virtual_packages=_virtual(asked["system"]),
            )
        except SolverError as error:
            _print({"error": f"{name}: {error}"})
            return
        lock.set_channels(name, [LockChannel(channel.base_url) for channel in channels])
        for record in sorted(solved, key=lambda record: record.name.normalized):
            lock.add_conda_package(name, platform, record)
    lock.to_path(Path(asked["file"]))
    _print({})


async def _fetch(text: str) -> None:
    """Fetch the packages of environments into a cache, without those that can't be solved."""
    import rattler  # noqa: PLC0415 - as above
    from rattler.exceptions import SolverError  # noqa: PLC0415

    asked = json.loads(text)
    gateway = rattler.Gateway(cache_dir=Path(asked["cache"]) / "repodata")
    for specs in asked["environments"]:
        try:
            records = await rattler.solve(
                [rattler.Channel(channel) for channel in asked["channels"]],
                specs,
                gateway=gateway,
                platforms=[asked["subdir"], "noarch"],
                virtual_packages=[v.into_generic() for v in rattler.VirtualPackage.detect()],
            )
        except SolverError:
            continue
        packages = Path(asked["packages"])
        names = (r.file_name.removesuffix(".conda").removesuffix(".tar.bz2") for r in records)
        if not all((packages / name).is_dir() for name in names):
            with TemporaryDirectory(dir=asked["cache"]) as prefix:
                await rattler.install(records, prefix, cache_dir=packages, show_progress=False)
    _print({})


async def _environments(text: str) -> None:
    """Install the environments of a lock below a directory, to be used at another path.

    With `only`, no package is fetched from another address than below that.
    """
    import rattler  # noqa: PLC0415 - as above
    from rattler.lock import LockFile  # noqa: PLC0415

    asked = json.loads(text)
    environments = dict(LockFile.from_path(Path(asked["file"])).environments())
    for name in asked["environments"]:
        for platform in environments[name].platforms():
            records = environments[name].conda_repodata_records_for_platform(platform) or []
            for record in records:
                if not record.url.startswith(asked["only"]):
                    _print({"error": record.url})
                    return
            await rattler.install(
                records,
                Path(asked["folder"], name),
                cache_dir=Path(asked["cache"]),
                platform=platform.subdir,
                show_progress=False,
                alternative_target_prefix=f"{asked['seen_as']}/{name}",
            )
    _print({})


def _activate(text: str) -> None:
    """Print the shell script that activates environments, each upon those before."""
    from rattler.shell import ActivationVariables, Shell, activate  # noqa: PLC0415 - as above

    asked, script = json.loads(text), ""
    folders = asked["path"].split(":")
    for prefix in asked["prefixes"]:
        made = activate(Path(prefix), ActivationVariables(None, folders), Shell.bash)
        folders = [str(path) for path in cast("list[Path]", made.path)]
        script += f"{made.script}\n"
    _print({"script": script})


def _print(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")


async def _main(words: Sequence[str]) -> None:
    match words:
        case ["index", channel]:
            await _index(channel)
        case ["install", text]:
            await _install(text)
        case ["lock", text]:
            await _lock(text)
        case ["fetch", text]:
            await _fetch(text)
        case ["environments", text]:
            await _environments(text)
        case ["activate", text]:
            _activate(text)
        case _:
            sys.exit(f"unknown command: {words}")


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
    sys.stdout.write(f"{DONE}\n")
    sys.stdout.flush()
