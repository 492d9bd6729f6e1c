"""Compare extensions with torch releases: which ones they load with."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement

from torchyard.checks.compat.extension import ExtensionWheel, read_extension
from torchyard.checks.compat.fold import fold_wheels
from torchyard.checks.compat.matrix import LoadVerdict, load_matrix
from torchyard.checks.compat.table import load_compat_table
from torchyard.checks.expected import local_compute
from torchyard.checks.torch_symbols import TorchSymbols
from torchyard.config.tables import load_tables
from torchyard.errors import SelectionError, UsageError
from torchyard.features.compat.report import ComparedTorch, CompatReport, compared_wheel
from torchyard.host.http import HttpClient
from torchyard.host.machine import python_name
from torchyard.host.remote_file import RemoteFile
from torchyard.model.requirement import parse_requirement
from torchyard.package.wheel.name import WheelName, is_wheel_name
from torchyard.package.wheel.parts import WheelParts
from torchyard.smoke.loading import load_beside_torch
from torchyard.smoke.outcome import SmokeAttempt
from torchyard.smoke.package_under_test import read_package_under_test
from torchyard.smoke.surroundings import NO_SANDBOX
from torchyard.toolchain.index_wheels import find_wheel, release_wheels
from torchyard.workspace.progress import Meter, ignore_line, no_meter
from torchyard.workspace.torch_releases import (
    TorchRange,
    find_releases,
    read_torch_wheel,
    torch_symbols,
)

_LINUX = "manylinux"
_MACHINES = ("x86_64", "aarch64")


def compare_with_torch(
    wheels: Iterable[str],
    *,
    torch: str = "",
    abi: bool = False,
    run: bool = False,
    meter: Meter = no_meter,
    on_line: Callable[[str], None] = ignore_line,
) -> CompatReport:
    """Return the torch releases that wheels load with, judged from the symbols of both.

    Args:
        wheels: Paths or addresses of wheels, or requirements such as `xformers==0.0.35`.
        torch: The releases: `2.10..`, `2.10..2.13` or `2.13`; the newest six if empty. Or the path
            or address of a torch wheel.
        abi: Only find the ABI classes of wheels, for any system; no torch is read, and
            requirements mean all wheels of a release.
        run: Also install each wheel beside each release, and load it.
        meter: Shows progress.
        on_line: Called with each line of progress of `run`.
    """
    if abi and (torch or run):
        msg = "`--abi` compares with no torch"
        raise UsageError(msg, hint=f"leave out one of --abi and {'--torch' if torch else '--run'}")
    if abi:
        urls = [url for wheel in wheels for url in _urls(wheel)]
        return _report([(_read(url, meter), ()) for url in urls], {})
    if is_wheel_name(torch) and run:
        msg = "`--run` installs releases of the index, not a wheel"
        raise UsageError(msg, hint="remove --run, or name releases, such as 2.10..")
    given = read_torch_wheel(_given(torch), meter) if is_wheel_name(torch) else None
    asked = TorchRange.parse(torch) if torch and not given else TorchRange()
    most = load_compat_table().releases
    urls = [_url(wheel) for wheel in wheels]
    extensions = [_read(url, meter, only_linux=True) for url in urls]
    known: dict[tuple[str, str, str], list[TorchSymbols]] = {}
    compared = []
    for extension in extensions:
        if given and not extension.can_be_beside(given.file):
            msg = f"`{extension.name}` is for another Python or machine than `{given.file}`"
            raise UsageError(msg, hint="name a torch wheel with the same tags")
        key = (
            _python(extension.name),
            _machine(extension.name),
            local_compute(extension.name.version),
        )
        if key not in known and given:
            known[key] = [given]
        elif key not in known:
            found = find_releases(asked, *key[:2], most, meter, local=key[2])
            known[key] = [torch_symbols(wheel, meter) for wheel in found]
        compared.append((extension, load_matrix(extension, known[key])))
    tried = _load_all(urls, compared, meter, on_line) if run else {}
    return _report(compared, tried)


def _report(
    compared: Sequence[tuple[ExtensionWheel, Sequence[LoadVerdict]]],
    tried: Mapping[tuple[str, str], SmokeAttempt],
) -> CompatReport:
    """Return the comparisons and trials; the keys are the wheel's name and torch's version."""
    return CompatReport(
        builds=len(fold_wheels(extension for extension, _ in compared)),
        wheels=[
            compared_wheel(
                extension,
                [
                    ComparedTorch(
                        torch=verdict.torch.version,
                        file=verdict.torch.file,
                        toolkits=verdict.torch.toolkits,
                        loads=verdict.loads,
                        admitted=verdict.admitted,
                        obstacles=verdict.obstacles,
                        tried=tried.get((str(extension.name), verdict.torch.version)),
                    )
                    for verdict in verdicts
                ],
            )
            for extension, verdicts in compared
        ],
    )


def _load_all(
    urls: Sequence[str],
    compared: Sequence[tuple[ExtensionWheel, Sequence[LoadVerdict]]],
    meter: Meter,
    on_line: Callable[[str], None],
) -> dict[tuple[str, str], SmokeAttempt]:
    """Load each wheel beside each torch; the keys are the wheel's name and torch's version."""
    on_line(NO_SANDBOX)
    tried = {}
    for url, (extension, verdicts) in zip(urls, compared, strict=True):
        with TemporaryDirectory(prefix="torchyard-compat-") as scratch:
            wheel = _local(url, str(extension.name), Path(scratch), meter)
            package = read_package_under_test(wheel)
            for verdict in verdicts:
                version = verdict.torch.version
                folder = Path(scratch, version)
                found = load_beside_torch(package, version, _python(extension.name), folder)
                why = f": {found.why}" if found.why else ""
                on_line(f"{extension.name}: beside torch {version} {found.outcome}{why}")
                tried[str(extension.name), version] = found
                shutil.rmtree(folder, ignore_errors=True)  # up to 8 GB
    return tried


def _local(url: str, name: str, folder: Path, meter: Meter) -> Path:
    """Return the path of a wheel, downloaded into a folder if it is on a server."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    path = folder / name
    client = HttpClient()
    with meter(f"downloading {name}", client.head(url).size or 0) as done, path.open("wb") as file:
        for piece in client.pieces(url):
            file.write(piece)
            done(len(piece))
    return path


def _read(url: str, meter: Meter, *, only_linux: bool = False) -> ExtensionWheel:
    file = RemoteFile(url)
    if only_linux:
        _machine(WheelName.parse(file.name))
    parts = WheelParts(file)
    with meter(f"reading {file.name}", sum(map(parts.stored, parts.libraries()))) as file.fetched:
        extension = read_extension(parts)
    if not extension.libraries:
        msg = f"`{file.name}` has no libraries, so it loads with any torch"
        raise UsageError(msg, hint="name a wheel with compiled code")
    return extension


def _url(wheel: str) -> str:
    """Return the address of a wheel: given, of a file, or in the index."""
    if url := _given(wheel):
        return url
    python = _dotted(python_name())
    found = find_wheel(_requirement(wheel), python, _MACHINES[0])
    if found is None:
        msg = f"the index has no wheel of `{wheel}` for Python {python} on Linux {_MACHINES[0]}"
        raise SelectionError(msg, hint="it may have none for this Python: name its address")
    return found.url


def _urls(wheel: str) -> list[str]:
    """Return the address of a wheel, or the addresses of all wheels of a release."""
    if url := _given(wheel):
        return [url]
    oldest = min(map(_sort_key, load_tables().pythons))
    return [found.url for found in release_wheels(_requirement(wheel), "{}.{}".format(*oldest))]


def _given(wheel: str) -> str:
    """Return the address of a wheel given by address or path, or ""."""
    if "://" in wheel:
        return wheel
    if is_wheel_name(wheel) or Path(wheel).exists():
        return Path(wheel).absolute().as_uri()
    return ""


def _requirement(wheel: str) -> str:
    try:
        return str(parse_requirement(wheel))
    except InvalidRequirement as error:
        msg = f"`{wheel}` is neither a wheel nor a project with a version"
        raise UsageError(msg, hint="name a .whl file, its address, or NAME==VERSION") from error


def _machine(name: WheelName) -> str:
    """Return the machine that a wheel is for."""
    for machine in _MACHINES:
        if "linux" in name.platform and name.platform.endswith(machine):
            return machine
    msg = f"`{name}` is for {name.platform}; only wheels for Linux are compared"
    raise UsageError(msg, hint=f"name a wheel for {' or '.join(_MACHINES)}")


def _python(name: WheelName) -> str:
    """Return the Python whose torch a wheel is compared with: the wheel's, or at least this one."""
    own = python_name()
    tag = name.python.split(".")[0].removesuffix("t")
    if name.abi.startswith("cp"):
        return _dotted(tag)
    if tag.startswith("cp") and _sort_key(tag) > _sort_key(own):
        return _dotted(tag)
    return _dotted(own)


def _dotted(tag: str) -> str:
    """Return `3.12` for cp312 and cp312t."""
    return f"{tag[2]}.{tag[3:].removesuffix('t')}"


def _sort_key(tag: str) -> tuple[int, int]:
    return int(tag[2]), int(tag[3:].removesuffix("t") or 0)
