"""The requirements of wheels, downloaded beforehand for tests without a network."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from torchyard.checks.smoke.confined import (
    channel_folders,
    make_venv,
    refuse_direct_references,
    run_pip,
    run_uv,
)
from torchyard.toolchain.interpreters import Interpreter


class WheelSources(NamedTuple):
    """Where requirements come from.

    `exactly` are the versions that some must have; `indexes` are searched besides those that pip
    is set up for.
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
    """Download the requirements of wheels, and the oldest and newest numpy, if tests need one."""
    if (folder / "complete").exists():
        return
    for wheel in wheels:
        refuse_direct_references(wheel)
    maker = folder / "pip"
    folder.mkdir(parents=True, exist_ok=True)
    make_venv(interpreter.path, maker)
    limits = folder / "constraints.txt"
    limits.write_text("".join(f"{pin}\n" for pin in sources.exactly), encoding="utf-8")
    more = [word for index in sources.indexes for word in ("--extra-index-url", index)]
    wanted: list[Sequence[str]] = [[*more, "-c", str(limits), str(wheel)] for wheel in wheels]
    if numpy:
        wanted += [["numpy"], [_oldest_numpy(interpreter, folder)]]
    for words in wanted:
        download = ("download", "--quiet", "--no-input", "--dest", str(folder))
        run_pip(
            str(maker / "bin/python"),
            *download,
            *words,
            cwd=folder,
            sees=channel_folders(sources.indexes),
        )
    (folder / "complete").touch()


def _oldest_numpy(interpreter: Interpreter, folder: Path) -> str:
    """Return the oldest numpy with a wheel for a Python: `numpy==1.23.2`."""
    asked = folder / "numpy.in"
    asked.write_text("numpy\n")
    words = ("--resolution", "lowest", "--only-binary", ":all:", "--no-header", "--no-annotate")
    return run_uv(
        "pip", "compile", "--quiet", "--python", interpreter.path, *words, str(asked), cwd=folder
    ).strip()


def offline(folder: Path, seen_as: str) -> dict[str, str]:
    """Write uv's settings, and return variables that let pip and uv install from such a folder."""
    settings = f"no-index = true\nfind-links = [{json.dumps(seen_as)}]\n"
    (folder / "uv.toml").write_text(settings, encoding="utf-8")
    return {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": seen_as,
        "UV_CONFIG_FILE": f"{seen_as}/uv.toml",
    }
