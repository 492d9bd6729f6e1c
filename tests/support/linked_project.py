"""A small project that CMake and ninja really build: what is linked with what is known."""

import subprocess
import zipfile
from pathlib import Path

CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(linked C)
set(CMAKE_C_FLAGS "-O0 -fPIC")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN")
include_directories(third_party/onlyheaders/include)
add_library(tinyfmt STATIC third_party/tinyfmt/tinyfmt.c)
add_library(base SHARED base.c)
target_link_libraries(base PRIVATE tinyfmt m)
add_library(parts OBJECT parts.c)
add_library(math SHARED math.c $<TARGET_OBJECTS:parts>)
set_target_properties(math PROPERTIES VERSION 1.2.3 SOVERSION 1)
target_link_libraries(math PRIVATE base)
add_library(whole SHARED whole.c)
target_link_libraries(whole PRIVATE "-Wl,--no-as-needed,\\"$<TARGET_FILE:math>\\" -Wl,--as-needed")
add_dependencies(whole math)
add_library(unused STATIC unused.c)
add_executable(tool tool.c)
target_link_libraries(tool PRIVATE math)
"""
SOURCES = {
    "third_party/tinyfmt/tinyfmt.c": "int tiny_format(int x) { return x; }",
    "third_party/onlyheaders/include/only.h": "#define ONLY 1\n",
    "base.c": "int tiny_format(int); double floor(double);"
    "int base_answer(int x) { return tiny_format(x) + (int)floor(x); }",
    "parts.c": "int part(void) { return 2; }",
    "math.c": "int base_answer(int); int part(void);"
    "int math_answer(void) { return base_answer(1) + part(); }",
    "whole.c": "int nothing;",
    "unused.c": "int unused;",
    "tool.c": "int math_answer(void); int main(void) { return math_answer(); }",
}


def build_linked(folder: Path) -> Path:
    """Build the project; return the build directory."""
    for name, text in {"CMakeLists.txt": CMAKE, **SOURCES}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    build = folder / "build"
    query = build / ".cmake/api/v1/query"
    query.mkdir(parents=True)
    (query / "codemodel-v2").touch()
    configure = ["cmake", "-G", "Ninja", "-S", str(folder), "-B", str(build)]
    for argv in (configure, ["ninja", "-C", str(build)]):
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return build


def pack_linked(build: Path, path: Path, **libraries: str) -> Path:
    """Write a wheel with files of the build, by the names that they have in it."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, source in libraries.items():
            archive.write(build / source, f"linked/lib/{name.replace('__', '.')}")
        about = "linked-1.dist-info"
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: linked\nVersion: 1\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return path
