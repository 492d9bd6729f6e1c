"""CPU seconds of a build of a matrix of packages, against compiling alone.

    python -m benchmarks.recipe UNITS      prints the seconds as JSON

`ninja` compiles each unit of tinytorch once, the core for the first Python and only the bindings
for the others. `full` is a whole build of one wheel from nothing, by the project's own backend.
`matrix` is `torchyard build` for four Pythons in three formats.
"""

import json
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.cpu import ControlGroup, control_group

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
    with control_group() as group:
        with TemporaryDirectory() as folder:
            measure_bare(group, Path(folder, "bare"), units, seconds)
        with TemporaryDirectory() as folder:
            measure_matrix(group, Path(folder, "ours"), units, seconds)
    print(json.dumps(seconds))


def measure_bare(group: ControlGroup, folder: Path, units: int, seconds: dict[str, float]) -> None:
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
        words = pointing if number else [*pointing[:1], *pointing[7:-1], "-S.", "-Bbuild"]
        configured = group.seconds(words, folder, env)
        compiled = group.seconds(["ninja", "-C", "build"], folder, env)
        seconds["ninja"] += compiled
        if not number:
            wheel = [f"{root}/bin/python", "-c", WHEEL, str(folder / "dist")]
            seconds["full"] = configured + compiled + group.seconds(wheel, folder, env)


def measure_matrix(
    group: ControlGroup, folder: Path, units: int, seconds: dict[str, float]
) -> None:
    shutil.copytree(PROJECT, folder)
    with (folder / "torchyard.toml").open("a", encoding="utf-8") as file:
        file.write(HEAVY.format(units=units))
    build = [str(TORCHYARD), "build", "package:*/cpu-openblas/*"]
    seconds["matrix"] = group.seconds(build, folder)


if __name__ == "__main__":
    main()
