"""The torch releases of an index, and their symbols."""

import re
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import NamedTuple

from packaging.version import Version

from torchyard.checks.torch_symbols import TorchSymbols
from torchyard.errors import SelectionError, UsageError
from torchyard.toolchain.index_wheels import IndexWheel
from torchyard.workspace.progress import Meter

_RANGE = re.compile(r"(?:(\d+)\.(\d+))?(\.\.)?(?:(\d+)\.(\d+))?")
_AT_ONCE = 6
_FOLDER = "symbols"

Minor = tuple[int, int]
"""A minor version, such as 2.14."""


class TorchRange(NamedTuple):
    """The minor versions to compare with; without a lowest, the newest few."""

    lowest: Minor | None = None
    highest: Minor | None = None

    @classmethod
    def parse(cls, text: str) -> "TorchRange":
        """Read `2.10..`, `2.10..2.13`, `..2.13` or `2.13`."""
        found = _RANGE.fullmatch(text)
        low = (int(found[1]), int(found[2])) if found and found[1] else None
        high = (int(found[4]), int(found[5])) if found and found[4] else None
        wrong = not found or not (low or high) or (low and high and low > high)
        if wrong or (low and high and not (found and found[3])):
            msg = f"`--torch {text}` is not a range of torch releases"
            raise UsageError(msg, hint="write 2.10.. or 2.10..2.13, ..2.13, or 2.13 alone")
        return cls(low, high if found and found[3] else low)


def find_releases(
    asked: TorchRange, python: str, machine: str, most: int, meter: Meter, *, local: str = ""
) -> list[IndexWheel]:
    """Return the last patch release of each minor version, the newest first.

    Without a lowest version, return at most `most`. Prefer wheels with this `local` version, then
    wheels without one (`2.13.0`, not `2.13.0+cpu`), then any.
    """
    from torchyard.toolchain.index_wheels import find_wheel

    def find(requirement: str) -> IndexWheel | None:
        first = wheel = find_wheel(requirement, python, machine)
        while wheel and Version(wheel.version).local not in (None, local):
            requirement += f",!={wheel.version}"
            wheel = find_wheel(requirement, python, machine)
        progress(1)
        return wheel if wheel and first and _minor(wheel) == _minor(first) else first

    below = f"<{asked.highest[0]}.{asked.highest[1] + 1}" if asked.highest else ""
    found: list[IndexWheel] = []
    with meter("asking the index for torch", most, "releases") as progress:
        newest = find(f"torch{below}")
        while newest:
            major, minor = _minor(newest)
            found.append(newest)
            least = _least(asked, (major, minor), most - len(found))
            minors = range(minor - 1, least - 1, -1)
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                found += filter(None, pool.map(find, (f"torch=={major}.{m}.*" for m in minors)))
            is_all = len(found) >= most if asked.lowest is None else asked.lowest >= (major, least)
            newest = None if is_all else find(f"torch<{major}.{least}")
    found = [wheel for wheel in found if _is_asked(wheel, asked)]
    if not found:
        msg = f"the index has no such torch for Python {python} on {machine}"
        raise SelectionError(msg, hint="choose others by --torch, or set another index for uv")
    return found


def _least(asked: TorchRange, newest: Minor, most: int) -> int:
    """Return the oldest minor version to consider, within the newest major version."""
    if asked.lowest is None:
        return max(newest[1] - most, 0)
    return min(asked.lowest[1], newest[1]) if asked.lowest[0] == newest[0] else 0


def _is_asked(wheel: IndexWheel, asked: TorchRange) -> bool:
    return asked.lowest is None or _minor(wheel) >= asked.lowest


def _minor(wheel: IndexWheel) -> Minor:
    major, minor = Version(wheel.version).release[:2]
    return major, minor


def torch_symbols(wheel: IndexWheel, meter: Meter) -> TorchSymbols:
    """Return the symbols of a torch wheel: from the cache, or by reading parts of the wheel."""
    from torchyard.checks.compat.symbol_cache import load_symbols_file, save_symbols_file
    from torchyard.host.cache import cache_folder

    folder = cache_folder(_FOLDER)
    name = wheel.sha256 or sha256(wheel.url.encode()).hexdigest()
    path = folder / f"{wheel.file}.{name[:16]}" if folder else None
    if path and (cached := load_symbols_file(path)):
        return cached
    symbols = read_torch_wheel(wheel.url, meter)
    if path:
        save_symbols_file(path, symbols)
    return symbols


def read_torch_wheel(url: str, meter: Meter) -> TorchSymbols:
    """Return the symbols of the torch wheel at an address."""
    from torchyard.checks.compat.table import torch_libraries
    from torchyard.checks.compat.torch_symbols import read_torch
    from torchyard.host.remote_file import RemoteFile
    from torchyard.package.wheel.name import WheelName
    from torchyard.package.wheel.parts import WheelParts

    file = RemoteFile(url)
    parts = WheelParts(file)
    libraries = torch_libraries(parts.libraries())
    if not libraries:
        msg = f"`{file.name}` has no libraries of torch"
        raise UsageError(msg, hint="name a torch wheel, or releases, such as 2.10..")
    with meter(f"reading {file.name}", sum(map(parts.stored, libraries))) as file.fetched:
        return read_torch(parts, WheelName.parse(file.name).version)


def kept_torches() -> list[TorchSymbols]:
    """Return the releases whose symbols `torchyard compat` has cached."""
    from torchyard.checks.compat.symbol_cache import load_symbols_file
    from torchyard.host.cache import cache_folder

    folder = cache_folder(_FOLDER)
    found = map(load_symbols_file, sorted(folder.iterdir())) if folder else ()
    return [symbols for symbols in found if symbols]
