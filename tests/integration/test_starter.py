"""The file that `torchyard init` writes for an extension, built as it is."""

import shutil
from pathlib import Path

import pytest
from tests.helpers import Command

PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""

BACKEND = """
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "myext-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("myext.py", "")
        wheel.writestr("myext-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: myext\\nVersion: 1.0\\n")
        wheel.writestr("myext-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr("myext-1.0.dist-info/RECORD", "")
    return name
"""  # noqa: E501 - it is a program


@pytest.mark.skipif(not shutil.which("python3.11", path="/usr/bin"), reason="no system Python 3.11")
def test_an_extension_is_built_with_the_file_that_init_writes(
    torchyard: Command, tmp_path: Path
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "code/backend.py").write_text(BACKEND, encoding="utf-8")
    file = tmp_path / "torchyard.toml"
    names = ("--recipe", "extension", "--name", "myext", "--version", "1.0", "--path", "code")
    cell = ("--platform", "linux-x86_64", "--compute", "cpu", "--python", "cp311")
    assert torchyard("init", "-f", file, *names, *cell).code == 0
    done = torchyard("build", "package:*", "-f", file, "-o", tmp_path / "dist")
    assert done.code == 0, done.err
    assert [path.name for path in (tmp_path / "dist").iterdir()] == ["myext-1.0-py3-none-any.whl"]
