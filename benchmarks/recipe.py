"""CPU seconds of a build of a matrix of packages, against compiling alone.

    python recipe.py UNITS      prints the seconds as JSON

`ninja` compiles each unit of tinytorch once, the core for the first Python and only the bindings
for the others. `full` is a whole build of one wheel from nothing, by the project's own backend.
`matrix` is `torchyard build` for four Pythons in three formats.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory

PROJECT = Path(__file__).parent.parent / "tests/projects/tinytorch"
TORCHYARD = Path(sysconfig.get_path("scripts")) / "torchyard"
PYTHONS = ("cp310", "cp311", "cp312", "cp313")
HEAVY = """
[[override]]
stage = "core"
env = {{ TT_UNITS = "{units}", TT_WEIGHT = "heavy" }}
"""
WHEEL = (
    "import scikit_build_core.build as b, sys; b.build_wheel(sys.argv[1], {'build-dir': 'build'})"
)


def main() -> None:
    seconds = dict.fromkeys(("ninja", "full", "matrix"), 0.0)
    units = int(sys.argv[1])
    with TemporaryDirectory() as folder:
        measure_bare(Path(folder, "bare"), units, seconds)
    with TemporaryDirectory() as folder:
        measure_matrix(Path(folder, "ours"), units, seconds)
    print(json.dumps(seconds))


@contextmanager
def counting(seconds: dict[str, float], *names: str) -> Iterator[None]:
    """Add the CPU time of child processes to the totals."""
    before = getrusage(RUSAGE_CHILDREN)
    yield
    after = getrusage(RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    for name in names:
        seconds[name] += used


def run(argv: list[str], cwd: Path, env: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(argv, cwd=cwd, env=env, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{argv} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def measure_bare(folder: Path, units: int, seconds: dict[str, float]) -> None:
    """Compile each unit once, with the same tools, by hand."""
    from torchyard.config.load import load_config  # noqa: PLC0415 - ours is measured by itself
    from torchyard.toolchain.cmake import repoint, request_file_api  # noqa: PLC0415
    from torchyard.toolchain.interpreters import interpreter_for  # noqa: PLC0415
    from torchyard.toolchain.pypi import install, make_environment, read_lock  # noqa: PLC0415

    shutil.copytree(PROJECT, folder)
    request_file_api(folder / "build")
    blas = folder.with_name("blas")
    install(read_lock("openblas"), blas, sys.executable)
    requires = load_config(str(PROJECT / "torchyard.toml")).build.requires
    root = folder.with_name("env")
    env = {
        "PATH": f"{root}/bin:{os.defpath}",
        "CMAKE_GENERATOR": "Ninja",
        "CMAKE_PREFIX_PATH": str(blas / "scipy_openblas32"),
        "LD_LIBRARY_PATH": str(blas / "scipy_openblas32/lib"),
        "BLAS": "OpenBLAS",
        "USE_CUDA": "0",
        "TT_UNITS": str(units),
        "TT_WEIGHT": "heavy",
    }
    for number, tag in enumerate(PYTHONS):
        python = interpreter_for(tag)
        make_environment(python, requires, root)
        build = folder / "build"
        pointing = repoint(build, f"{root}/bin/python", python.include, python.prefix)
        with counting(seconds, *([] if number else ["full"])):
            run(
                pointing if number else [*pointing[:1], *pointing[7:-1], "-S.", "-Bbuild"],
                folder,
                env,
            )
        with counting(seconds, "ninja", *([] if number else ["full"])):
            run(["ninja", "-C", "build"], folder, env)
        if not number:
            with counting(seconds, "full"):
                run([f"{root}/bin/python", "-c", WHEEL, str(folder / "dist")], folder, env)


def measure_matrix(folder: Path, units: int, seconds: dict[str, float]) -> None:
    shutil.copytree(PROJECT, folder)
    with (folder / "torchyard.toml").open("a", encoding="utf-8") as file:
        file.write(HEAVY.format(units=units))
    with counting(seconds, "matrix"):
        run([str(TORCHYARD), "build", "package:*/cpu-openblas/*"], folder)


if __name__ == "__main__":
    main()
