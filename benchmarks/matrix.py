"""What a matrix of an extension costs, in CPU seconds, beside bare pip.

    python -m benchmarks.matrix PROJECT

PROJECT is a directory with a torchyard.toml and a torchyard.lock. For each cell, pip compiles the
same sdist without build isolation, in an environment with the locked wheels, made before. Both have
the same flags, and see no nvcc. It compiles the matrix twice, so `nox -s bench` does not run it.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.cpu import control_group

from torchyard.toolchain.interpreters import interpreter_for

HIDDEN = ("nvcc", "sccache")
"""What a cell for the CPU does not see, or does not use: both would compile something else."""


def plain_path(folder: Path) -> str:
    """Return a PATH with the programs of this one, but for the hidden ones."""
    folder.mkdir()
    for directory in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(directory).iterdir() if Path(directory).is_dir() else ():
            link = folder / program.name
            link.unlink(missing_ok=True)
            if program.name not in HIDDEN and not program.is_dir():
                link.symlink_to(program)
    return str(folder)


def environment(folder: Path, cell: str, wheels: list[str]) -> Path:
    """Make an environment with the wheels that a cell is locked to, and return its Python."""
    python = str(interpreter_for(cell.rpartition("/")[2]).path)
    pins = ["==".join(wheel.split("-")[:2]) for wheel in wheels]
    pins = [pin for pin in pins if not pin.startswith(("ninja==", "pip=="))]
    where = ["--python", str(folder / "bin/python")]
    subprocess.run(["uv", "venv", "-q", "--seed", "--python", python, str(folder)], check=True)
    extra = [
        word for links in os.environ.get("PIP_FIND_LINKS", "").split() for word in ("-f", links)
    ]
    subprocess.run(
        [
            "uv",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--compile-bytecode",
            *extra,
            *where,
            *pins,
            "ninja",
        ],
        check=True,
    )
    return folder / "bin/python"


def main(project: Path) -> None:
    lock = tomllib.loads((project / "torchyard.lock").read_text(encoding="utf-8"))
    config = tomllib.loads((project / "torchyard.toml").read_text(encoding="utf-8"))
    bare = 0.0
    with TemporaryDirectory(dir=project) as name, control_group() as group:
        folder = Path(name)
        env = {**os.environ, "CPPFLAGS": "-g0", "MAX_JOBS": "2", "PIP_NO_CACHE_DIR": "1"}
        path = plain_path(folder / "bin")
        sdist = config["source"]["sdist"]
        plain = ["--no-build-isolation", "--no-deps", "--no-binary", ":all:", sdist]
        for cell, wheels in lock["environments"].items():
            python = environment(folder / "env", cell, wheels)
            words = [str(python), "-m", "pip", "wheel", "-q", "-w", str(folder / "dist"), *plain]
            own = {**env, "PATH": f"{python.parent}{os.pathsep}{path}"}
            took = group.seconds(words, folder, own)
            print(f"pip wheel, {cell}: {took:.1f} CPU s", flush=True)
            bare += took
            shutil.rmtree(folder / "env")
        torchyard = shutil.which("torchyard") or sys.exit("torchyard is not on PATH")
        build = [torchyard, "build", "--skip", "smoke:*", "-o", str(folder / "ours")]
        ours = group.seconds(build, project)
    print(f"torchyard build, {len(lock['environments'])} cells: {ours:.1f} CPU s")
    print(f"pip wheel: {bare:.1f} CPU s; {ours / bare:.2f}×")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
