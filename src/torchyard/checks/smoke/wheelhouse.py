"""What wheels require, downloaded beforehand: so they can be tried where there is no network."""

import json
from collections.abc import Sequence
from pathlib import Path

from torchyard.checks.smoke.install import installer_environment, uv
from torchyard.host.process import capture
from torchyard.toolchain.interpreters import Interpreter


def gather(wheels: Sequence[Path], interpreter: Interpreter, folder: Path, *, numpy: bool) -> None:
    """Download what wheels require, and the oldest and newest numpy, if tests want one."""
    if (folder / "complete").exists():
        return
    maker = folder / "pip"
    folder.mkdir(parents=True, exist_ok=True)
    capture(
        [interpreter.path, "-I", "-m", "venv", str(maker)], cwd=folder, env=installer_environment()
    )
    wanted: list[Sequence[str]] = [[str(wheel)] for wheel in wheels]
    if numpy:
        wanted += [["numpy"], [_oldest_numpy(interpreter, folder)]]
    pip = [str(maker / "bin/python"), "-I", "-m", "pip", "download", "--quiet", "--no-input"]
    for words in wanted:
        capture([*pip, "--dest", str(folder), *words], cwd=folder, env=installer_environment())
    (folder / "complete").touch()


def _oldest_numpy(interpreter: Interpreter, folder: Path) -> str:
    """The oldest numpy that there is a wheel of: `numpy==1.23.2`."""
    asked = folder / "numpy.in"
    asked.write_text("numpy\n")
    words = ("--resolution", "lowest", "--only-binary", ":all:", "--no-header", "--no-annotate")
    return uv(
        "pip", "compile", "--quiet", "--python", interpreter.path, *words, str(asked), cwd=folder
    ).strip()


def offline(folder: Path, seen_as: str) -> dict[str, str]:
    """What lets pip and uv take everything from such a folder; uv has no variable for it."""
    settings = f"no-index = true\nfind-links = [{json.dumps(seen_as)}]\n"
    (folder / "uv.toml").write_text(settings, encoding="utf-8")
    return {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": seen_as,
        "UV_CONFIG_FILE": f"{seen_as}/uv.toml",
    }
