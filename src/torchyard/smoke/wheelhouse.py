"""The requirements of wheels, downloaded for tests without a network."""

import json
from collections.abc import Sequence
from hashlib import file_digest
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from torchyard.errors import CheckError, HostError
from torchyard.package.wheel.format import WheelFormat
from torchyard.smoke.confined import (
    channel_folders,
    make_venv,
    refuse_direct_references,
    run_pip,
    run_uv,
)
from torchyard.toolchain.interpreters import Interpreter

_HASH = "--hash=sha256:"


class WheelSources(NamedTuple):
    """Sources of requirements.

    `exactly` are requirements of single versions, with hashes of their wheels; `indexes` are
    searched besides pip's configured ones.
    """

    exactly: Sequence[str] = ()
    indexes: Sequence[str] = ()


def gather(
    wheels: Sequence[Path],
    interpreter: Interpreter,
    folder: Path,
    sources: WheelSources,
    *,
    numpy: bool,
) -> None:
    """Download the requirements of wheels, and the oldest and newest numpy if tests need one.

    Refuse requirements by address, and wheels of exact requirements with other hashes: an index may
    have a different wheel of the same version.
    """
    if (folder / "complete").exists():
        return
    for wheel in wheels:
        refuse_direct_references(wheel)
    maker = folder / "pip"
    folder.mkdir(parents=True, exist_ok=True)
    make_venv(interpreter.path, maker)
    limits = folder / "constraints.txt"
    pins = dict(pin.split(f" {_HASH}") for pin in sources.exactly)
    limits.write_text("".join(f"{pin}\n" for pin in pins), encoding="utf-8")
    more = [word for index in sources.indexes for word in ("--extra-index-url", index)]
    wanted: list[Sequence[str]] = [[*more, "-c", str(limits), str(wheel)] for wheel in wheels]
    if numpy:
        wanted += [["numpy"], [_oldest_numpy(interpreter, folder)]]
    for words in wanted:
        download = ("download", "--quiet", "--no-input", "--dest", str(folder))
        python, seen = str(maker / "bin/python"), channel_folders(sources.indexes)
        try:
            run_pip(python, *download, *words, cwd=folder, sees=seen)
        except HostError as error:
            raise _missing(str(error), sources) from error
    for wheel in folder.glob(f"*{WheelFormat.SUFFIXES[0]}"):
        refuse_direct_references(wheel)
    for pin, digest in pins.items():
        _refuse_other_bytes(folder, pin, digest)
    (folder / "complete").touch()


def _missing(output: str, sources: WheelSources) -> HostError:
    """Return the error for requirements that pip could not find."""
    lines = [line for line in output.splitlines() if line.startswith("ERROR: ")]
    if not lines:
        return HostError(output)
    where = ", ".join(("those of pip", *sources.indexes))
    msg = f"{lines[-1].removeprefix('ERROR: ')}\nindexes: {where}\n{output}"
    return HostError(msg, hint="check the names; `indexes` of [smoke] names further indexes")


def _refuse_other_bytes(folder: Path, pin: str, digest: str) -> None:
    """Refuse wheels of a package, in any spelling, without the given SHA-256."""
    name = canonicalize_name(pin.partition("==")[0])
    for wheel in folder.glob(f"*{WheelFormat.SUFFIXES[0]}"):
        if WheelFormat().distribution(wheel.name) != name:
            continue
        with wheel.open("rb") as file:
            found = file_digest(file, "sha256").hexdigest()
        if found != digest:
            msg = f"`{wheel.name}` of an index is not the wheel in torchyard.lock"
            hint = "remove it from the indexes of [smoke] and of pip, or run `torchyard lock`"
            raise CheckError(msg, hint=hint)


def _oldest_numpy(interpreter: Interpreter, folder: Path) -> str:
    """Return the oldest numpy with a wheel for a Python: `numpy==1.23.2`."""
    asked = folder / "numpy.in"
    asked.write_text("numpy\n")
    words = ("--resolution", "lowest", "--only-binary", ":all:", "--no-header", "--no-annotate")
    return run_uv(
        "pip", "compile", "--quiet", "--python", interpreter.path, *words, str(asked), cwd=folder
    ).strip()


def offline(folder: Path, seen_as: str) -> dict[str, str]:
    """Write uv's settings, and return variables for installing from the folder with pip and uv."""
    settings = f"no-index = true\nfind-links = [{json.dumps(seen_as)}]\n"
    (folder / "uv.toml").write_text(settings, encoding="utf-8")
    return {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": seen_as,
        "UV_CONFIG_FILE": f"{seen_as}/uv.toml",
    }
