# mypy: ignore-errors
"""Builds as PyTorch's setup.py does: CMake installs into mini/, and that is what is packed."""

import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build import build

FLAGS = {"--cmake-only"} & set(sys.argv)
sys.argv = [arg for arg in sys.argv if arg not in FLAGS]


class Build(build):
    def run(self) -> None:
        if FLAGS:
            subprocess.run(["cmake", "-G", "Ninja", "-S", ".", "-B", "build"], check=True)
            return
        subprocess.run(["cmake", "--build", "build"], check=True)
        subprocess.run(["cmake", "--install", "build", "--prefix", "mini"], check=True)
        super().run()


class BinaryDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(
    name="mini",
    version="1.0+cpu",
    packages=["mini"],
    package_data={"mini": ["*.so", "*.txt", "lib/*", "include/*"]},
    distclass=BinaryDistribution,
    cmdclass={"build": Build},
)
