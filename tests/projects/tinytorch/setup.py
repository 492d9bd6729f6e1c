# mypy: ignore-errors
# (setuptools has no types in its older releases)
"""Builds as PyTorch's setup.py does: CMake installs into tinytorch/, and that is what is packed.

    python setup.py build --cmake-only    stop when CMake has configured build/
    python setup.py build --cmake         configure again

The switches are read from the environment by cmake/Environment.cmake; MAX_JOBS and CMAKE_ARGS here.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build import build

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "build"
sys.path.insert(0, str(ROOT / "tools"))

import tt_version  # noqa: E402 - found in tools/ only

FLAGS = {"--cmake", "--cmake-only"} & set(sys.argv)
sys.argv = [arg for arg in sys.argv if arg not in FLAGS]


def configure() -> None:
    command = ["cmake", "-G", "Ninja", "-S", str(ROOT), "-B", str(BUILD)]
    command += [f"-DCMAKE_INSTALL_PREFIX={ROOT / 'tinytorch'}"]
    command += [f"-DPython_EXECUTABLE={sys.executable}"]
    command += shlex.split(os.environ.get("CMAKE_ARGS", ""))
    subprocess.run(command, check=True)


def install() -> None:
    command = ["cmake", "--build", str(BUILD), "--target", "install"]
    if jobs := os.environ.get("MAX_JOBS"):
        command += ["-j", jobs]
    subprocess.run(command, check=True)


class Build(build):
    """Let CMake build and install before the files are collected."""

    def run(self) -> None:
        if FLAGS or not (BUILD / "CMakeCache.txt").exists():
            configure()
        if "--cmake-only" in FLAGS:
            print(f"CMake has configured {BUILD}.")
            return
        install()
        super().run()


class BinaryDistribution(Distribution):
    """One for each Python and platform, though no Extension is listed."""

    def has_ext_modules(self) -> bool:
        return True


setup(
    version=tt_version.version(),
    packages=["tinytorch"],
    package_data={
        "tinytorch": [
            "*.pyi",
            "py.typed",
            f"_C{sysconfig.get_config_var('EXT_SUFFIX')}",  # not another Python's
            "bin/*",
            "include/**/*",
            "lib/*",
            "share/**/*",
        ]
    },
    distclass=BinaryDistribution,
    cmdclass={"build": Build},
)
