from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    packages=["tinyext"],
    ext_modules=[
        CppExtension(
            "tinyext._C",
            ["csrc/twice.cpp"],
            extra_compile_args=["-O1", "-DTORCH_TARGET_VERSION=0x020a000000000000"],
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
