"""A CMake project with archives planted into its links, in every way that linkers know."""

import subprocess
from pathlib import Path

PLANTED = {
    "path": "${OUT}/libpath.a",
    "named": "-L${OUT} -lnamed",
    "spaced": "-L ${OUT} -lspaced",
    "exact": "-L${OUT} -l:libexact.a",
    "whole": "-Wl,--whole-archive,${OUT}/libwhole.a -Wl,--no-whole-archive",
    "beside": "-L${OUT} -Wl,-Bstatic -lbeside -Wl,-Bdynamic",  # a shared library is there, too
    "script": "-L${OUT} -lscript",  # a linker script in the place of a shared library
}
"""Options for each planted archive; all but `script` are called `libNAME.a`."""

SHARED = "int {name}(void) {{ return 1; }}"
CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(planted C)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(OUT ${{CMAKE_SOURCE_DIR}}/outside)
add_library(tinyfmt STATIC third_party/tinyfmt/tinyfmt.c)
add_library(own STATIC own.c)
add_library(unused STATIC own.c)
add_library(planted SHARED planted.c)
target_link_libraries(planted PRIVATE tinyfmt own {libraries} -L${{OUT}} -lshared pthread m)
target_link_options(planted PRIVATE -Wl,--trace -Wl,--no-as-needed "${{OUT}}/libflag.a")
add_library(plain SHARED plain.c)
add_library(other SHARED other.c)
target_link_libraries(other PRIVATE unused)
"""


def build_planted(folder: Path) -> str:
    """Build the project in `folder/build`; return what the linker says of the files it takes."""
    outside = folder / "outside"
    vendored = folder / "third_party/tinyfmt"
    for place in (outside, vendored):
        place.mkdir(parents=True)
    for name in (*PLANTED, "real", "flag", "shared"):
        make_archive(outside, name)
    for name in ("beside", "shared"):
        run("gcc", "-shared", "-o", outside / f"lib{name}.so", outside / f"{name}.o")
    (outside / "libscript.a").unlink()  # so that only the script is found
    script = f"/* GNU ld script */\nGROUP ( {outside}/libreal.a AS_NEEDED ( -lshared ) )\n"
    (outside / "libscript.so").write_text(script, encoding="utf-8")
    libraries = " ".join(f'"{options}"' for options in PLANTED.values())
    texts = {
        "CMakeLists.txt": CMAKE.format(libraries=libraries),
        "third_party/tinyfmt/tinyfmt.c": SHARED.format(name="tinyfmt"),
        "third_party/tinyfmt/LICENSE": "Boost Software License - Version 1.0 - August 17th, 2003\n",
        "third_party/tinyfmt/CMakeLists.txt": "project(tinyfmt LANGUAGES C VERSION 1.2.3)\n",
        "own.c": SHARED.format(name="own"),
        "planted.c": "int path(void); int planted(void) { return path(); }",
        "plain.c": "int plain;",
        "other.c": "int other;",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    build = folder / "build"
    run("cmake", "-G", "Ninja", "-S", folder, "-B", build)
    return run("ninja", "-v", "-C", build)


def make_archive(folder: Path, name: str) -> None:
    source = folder / f"{name}.c"
    source.write_text(SHARED.format(name=name), encoding="utf-8")
    run("gcc", "-fPIC", "-c", source, "-o", folder / f"{name}.o")
    run("ar", "rcs", folder / f"lib{name}.a", folder / f"{name}.o")


def run(*argv: object, cwd: Path | None = None) -> str:
    words = [str(word) for word in argv]
    done = subprocess.run(words, check=False, cwd=cwd, capture_output=True, text=True)
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout
