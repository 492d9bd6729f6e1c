"""A separate program that uses py-rattler, which may crash at exit.

The caller reads its output and ignores its exit code: after success, the last line is `done`.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

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
    virtual = [
        rattler.GenericVirtualPackage(
            rattler.PackageName(name), rattler.Version(version), rattler.BuildString("0")
        )
        for name, version in system.items()
    ]
    cache = Path(asked["cache"])
    try:
        records = await rattler.solve(
            [rattler.Channel(channel) for channel in asked["channels"]],
            asked["specs"],
            gateway=rattler.Gateway(cache_dir=cache / "repodata"),
            platforms=[rattler.Subdir.current(), "noarch"],
            virtual_packages=virtual,
        )
    except SolverError as error:
        _print({"error": str(error)})
        return
    if asked["prefix"]:
        await rattler.install(records, asked["prefix"], cache_dir=cache, show_progress=False)
    chosen = {r.name.normalized: (str(r.version), str(r.build)) for r in records}
    _print({"chosen": chosen})


def _print(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")


async def _main(words: Sequence[str]) -> None:
    match words:
        case ["index", channel]:
            await _index(channel)
        case ["install", text]:
            await _install(text)
        case _:
            sys.exit(f"unknown command: {words}")


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
    sys.stdout.write(f"{DONE}\n")
    sys.stdout.flush()
