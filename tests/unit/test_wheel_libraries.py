"""Compilers of an extension find the libraries that torch's requirements brought as wheels."""

import os
import subprocess
from pathlib import Path

from torchyard.toolchain.wheel_libraries import (
    compiler_variables,
    link_libraries,
    search_variables,
)

FIND = """cmake_minimum_required(VERSION 3.18)
project(x C)
find_path(HEADER thing.h REQUIRED)
find_library(THING NAMES libthing.so REQUIRED)
message(STATUS "${HEADER} ${THING}")
"""
UNIT = "#include <thing.h>\nint main() { return thing(); }\n"


def test_headers_and_libraries_of_wheels_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "env/lib/python3.12/site-packages/nvidia/cu13"
    (folder / "include").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "include/thing.h").write_text("int thing(void);\n", encoding="utf-8")
    library = folder / "lib/libthing.so.13"
    compile_ = ["gcc", "-x", "c", "-"]
    made = [*compile_, "-shared", "-fPIC", "-o", str(library)]
    subprocess.run(made, input="int thing(void) { return 7; }", text=True, check=True)
    (folder.parent / "empty").mkdir()

    found = compiler_variables(tmp_path / "env", "nvidia/*", tmp_path / "tmp/links")
    assert found == compiler_variables(tmp_path / "env", "nvidia/*", tmp_path / "tmp/links")
    assert found["CPATH"] == str(folder / "include")
    built = [*compile_, "-o", str(tmp_path / "a.out"), "-lthing"]
    env = {"PATH": os.environ["PATH"], **found}
    subprocess.run(built, input=UNIT, text=True, env=env, check=True)
    loads = {"LD_LIBRARY_PATH": str(library.parent)}
    library.with_name("libthing.so").symlink_to(library)
    assert subprocess.run([tmp_path / "a.out"], env=loads, check=False).returncode == 7


def test_an_environment_without_them_changes_nothing(tmp_path: Path) -> None:
    assert compiler_variables(tmp_path, "nvidia/*", tmp_path / "links") == {}


def test_cmake_finds_a_library_of_a_required_wheel(tmp_path: Path) -> None:
    """As cuDNN's: a folder of its own, and no name without a version."""
    environment = tmp_path / "env"
    folder = environment / "lib/python/site-packages/nvidia/thing"
    (folder / "include").mkdir(parents=True)
    (folder / "include/thing.h").touch()
    (folder / "lib").mkdir()
    (folder / "lib/libthing.so.9").touch()
    (folder.parent / "only_a_module").mkdir()
    for _ in range(2):
        link_libraries(environment, "nvidia/*")
    found = search_variables(environment, "nvidia/*", str(environment))
    assert "only_a_module" not in str(found)
    (tmp_path / "CMakeLists.txt").write_text(FIND, encoding="utf-8")
    said = subprocess.run(
        ["cmake", "-S", tmp_path, "-B", tmp_path / "build"],
        env={"PATH": os.environ["PATH"], **found},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    assert f"{folder}/include {folder}/lib/libthing.so" in said
    assert (folder / "lib/libthing.so").readlink() == Path("libthing.so.9")


def test_steps_see_it_elsewhere(tmp_path: Path) -> None:
    for name in ("include", "lib"):
        (tmp_path / "lib/python/site-packages/nvidia/cudnn" / name).mkdir(parents=True)
    found = search_variables(tmp_path, "nvidia/*", "/mnt/torchyard/env")
    assert found["LIBRARY_PATH"] == ("/mnt/torchyard/env/lib/python/site-packages/nvidia/cudnn/lib")
