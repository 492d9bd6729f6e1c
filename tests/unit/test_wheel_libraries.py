"""Compilers of an extension find the libraries that torch's requirements brought as wheels."""

import os
import subprocess
from pathlib import Path

from torchyard.toolchain.wheel_libraries import compiler_variables

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
