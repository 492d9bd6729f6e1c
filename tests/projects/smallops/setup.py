from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    packages=["smallops"],
    ext_modules=[CppExtension("smallops._C", ["csrc/ops.cpp", "csrc/twice.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
