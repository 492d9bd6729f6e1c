"""A small package of real libraries, compiled for tests."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from torchyard.package.sbom.component import Bill

METADATA = "Metadata-Version: 2.1\nName: tinytorch\nVersion: 0\nRequires-Dist: sympy\n"
BILL = Bill(name="tinytorch", version="1.2.0+cpu", purl="pkg:pypi/tinytorch@1.2.0%2Bcpu")
INIT = """\
import ctypes, pathlib
answer = ctypes.CDLL(str(pathlib.Path(__file__).parent / "_C.so")).answer()
"""


class Built(NamedTuple):
    """The output of a core build and of the bindings for one Python."""

    install: Path
    vendor: Path
    image: Path


def run(*argv: object, env: dict[str, str] | None = None) -> str:
    words = [str(word) for word in argv]
    done = subprocess.run(words, check=False, capture_output=True, text=True, env=env)
    assert not done.returncode, done.stderr
    return done.stdout


def compile_library(
    path: Path, code: str, *needs: Path, soname: str | None = None, options: Sequence[str] = ()
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.parent / f"{path.name}.c"
    source.write_text(code, encoding="utf-8")
    flags = ["-shared", "-fPIC", "-Wl,--no-as-needed", f"-Wl,-soname,{soname or path.name}"]
    flags += ["-Wl,--allow-shlib-undefined", f"-ffile-prefix-map={path.parent}=.", *options]
    run("gcc", *flags, source, *needs, "-o", path)
    source.unlink()
    return path


def build(root: Path) -> Built:
    """A package `_C → libtiny → libc10`, and vendored `libtiny → libvend → libdeep`, libgomp."""
    install, vendor, image = root / "core/install", root / "core/vendor", root / "image"
    deep = compile_library(vendor / "libdeep.so.1", "int deep(void) { return 40; }")
    vend = compile_library(
        vendor / "libvend.so.2", "int deep(void); int vend(void) { return deep() + 1; }", deep
    )
    gomp = compile_library(vendor / "libgomp.so.1", "int gomp(void) { return 1; }")
    compile_library(vendor / "libunused.so.1", "int unused;")
    c10 = compile_library(
        install / "lib/libc10.so", "int c10(void) { return 0; }", options=["-g", "-Wl,-rpath,/opt"]
    )
    calls = "int c10(void), vend(void), gomp(void);"
    tiny = compile_library(
        install / "lib/libtiny.so",
        f"{calls} int tiny(void) {{ return c10() + vend() + gomp(); }}",
        *(c10, vend, gomp),
        options=["-g"],
    )
    (install / "include").mkdir()
    (install / "include/tiny.h").write_text("int tiny(void);\n", encoding="utf-8")
    (root / "main.c").write_text("int tiny(void); int main(void) { return tiny(); }\n", "utf-8")
    (install / "bin").mkdir()
    search = f"-Wl,-rpath-link,{vendor}:{install / 'lib'}"
    run("gcc", root / "main.c", tiny, search, "-o", install / "bin/tool")
    shutil.copytree(install, image / "tinytorch")
    compile_library(
        image / "tinytorch/_C.so", "int tiny(void); int answer(void) { return tiny(); }", tiny
    )
    (image / "tinytorch/__init__.py").write_text(INIT, encoding="utf-8")
    (image / "tinytorch-0.dist-info").mkdir()
    (image / "tinytorch-0.dist-info/METADATA").write_text(METADATA, encoding="utf-8")
    return Built(install, vendor, image)
