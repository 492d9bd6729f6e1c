"""Compiles as torch's module of this name does: with ninja, and with the same messages."""

import os
import subprocess
import sys
from pathlib import Path

import setuptools
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parents[1]
CUDA_HOME = os.environ.get("CUDA_HOME")
NINJA = """\
ninja_required_version = 1.3
cxx = {cxx}

cflags = {flags}

rule compile
  command = $cxx -MMD -MF $out.d $cflags -c $in -o $out
  depfile = $out.d
  deps = gcc

"""


def CppExtension(name, sources, **options):
    options.setdefault("include_dirs", []).append(str(HERE / "include"))
    options.setdefault("library_dirs", []).append(str(HERE / "lib"))
    options.setdefault("libraries", []).append("c10")
    return setuptools.Extension(name, sources, language="c++", **options)


def CUDAExtension(name, sources, **options):
    if CUDA_HOME is None:
        raise OSError(
            "CUDA_HOME environment variable is not set. Please set it to your CUDA install root."
        )
    return CppExtension(name, sources, **options)


class BuildExtension(build_ext):
    @classmethod
    def with_options(cls, **options):
        class cls_with_options(cls):
            def __init__(self, *args, **kwargs):
                kwargs.update(options)
                super().__init__(*args, **kwargs)

        return cls_with_options

    def __init__(self, *args, **kwargs):
        super().__init__(*args)
        self.use_ninja = kwargs.get("use_ninja", True)

    def build_extensions(self):
        def compile_with_ninja(
            sources,
            output_dir=None,
            macros=None,
            include_dirs=None,
            debug=0,
            extra_preargs=None,
            extra_postargs=None,
            depends=None,
        ):
            compiler = self.compiler
            output_dir = os.path.abspath(output_dir)
            macros, objects, extra, pp_opts, build = compiler._setup_compile(
                output_dir, macros, include_dirs, sources, depends, extra_postargs
            )
            post = list(extra_postargs or [])
            if not any(flag.startswith("-std=") for flag in post):
                post.append("-std=c++20")
            os.makedirs(output_dir, exist_ok=True)
            text = NINJA.format(
                cxx=compiler.compiler_so_cxx[0],
                flags=" ".join([*compiler.compiler_so_cxx[1:], *pp_opts, *post]),
            )
            for path, source in zip(objects, sources):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                text += f"build {path}: compile {os.path.abspath(source)}\n"
            Path(output_dir, "build.ninja").write_text(text)
            try:
                sys.stdout.flush()
                subprocess.run(["ninja", "-v"], check=True, cwd=output_dir)
            except subprocess.CalledProcessError as e:
                raise RuntimeError("Error compiling objects for extension") from e
            return objects

        if self.use_ninja:
            self.compiler.compile = compile_with_ninja
        super().build_extensions()
