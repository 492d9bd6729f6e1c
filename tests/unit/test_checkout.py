"""A checkout says what it is, and `torchyard init` writes it down with its reasons."""

from pathlib import Path

import pytest
from tests.helpers import Command

from torchyard.config.load import load_config
from torchyard.toolchain.checkout import FoundValue, read_checkout

SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
raise SystemExit("it was run")
__version__ = '1.2.2'
setup(name='my_ext', version=__version__, ext_modules=[CUDAExtension("a", ["a.cu"])])
"""
PYPROJECT = """
[build-system]
requires = ["scikit-build-core", "torch>=2.10"]
[project]
name = "other-ext"
version = "0.3"
requires-python = ">=3.10"
"""


def test_a_setup_py_is_read_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(SETUP, encoding="utf-8")
    found = read_checkout(tmp_path)
    assert found is not None
    assert found.name == FoundValue("my_ext", "setup.py")
    assert found.version == FoundValue("1.2.2", "setup.py")
    assert (found.torch, found.cuda, found.requires_python) == ("setup.py", "setup.py", None)


def test_a_pyproject_comes_first_and_sources_show_cuda(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (tmp_path / "setup.py").write_text("name = 'x'", encoding="utf-8")
    (tmp_path / "csrc").mkdir()
    (tmp_path / "csrc/kernel.cu").touch()
    found = read_checkout(tmp_path)
    assert found is not None
    assert found.name == FoundValue("other-ext", "pyproject.toml")
    assert found.requires_python == FoundValue(">=3.10", "pyproject.toml")
    assert (found.torch, found.cuda) == ("pyproject.toml", "csrc/kernel.cu")


USES = """
import os, torch.nn, scipy.sparse
import cv2
from torch_scatter import scatter_add
from . import near
from my_ext.sub import x
try:
    import optional_one
except ImportError:
    pass
def late():
    import another_one
raise SystemExit("it was run")
"""


def test_imports_that_are_not_declared_are_found(tmp_path: Path, torchyard: Command) -> None:
    text = SETUP.replace("ext_modules", "install_requires=['SciPy'], ext_modules")
    (tmp_path / "setup.py").write_text(text, encoding="utf-8")
    for name, content in (("__init__", ""), ("sub/x", USES), ("zz", USES), ("odd", "(" * 5000)):
        path = tmp_path / f"my_ext/{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    (tmp_path / "my_ext/dir.py").mkdir()
    found = read_checkout(tmp_path)
    assert found is not None
    assert found.undeclared == (
        FoundValue("cv2", "my_ext/sub/x.py"),
        FoundValue("torch_scatter", "my_ext/sub/x.py"),
    )
    assert torchyard("init", "-f", tmp_path / "torchyard.toml", "--path", tmp_path).code == 0
    written = (tmp_path / "torchyard.toml").read_text("utf-8")
    assert "# my_ext/sub/x.py imports torch_scatter, which is not declared; `dep" in written


def test_what_is_in_names_stays_in_a_comment(tmp_path: Path, torchyard: Command) -> None:
    """Names of files and values are those of the project, which may not be trusted."""
    lines = 'x\n[sandbox]\nkind = "none"\n#\x1b]0;x\x07'
    text = PYPROJECT.replace('">=3.10"', '">=3.10\\n[sandbox]\\nkind = 1"')
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    (tmp_path / "other_ext").mkdir()
    for name in (lines, "\udcff"):
        (tmp_path / f"other_ext/{name}.py").write_text(f"import missing_{len(name)}\n")
    (tmp_path / f"{lines}.cu").touch()
    file = tmp_path / "torchyard.toml"
    done = torchyard("init", "-f", file, "--path", tmp_path)
    assert done.code == 0, done.err
    assert load_config(str(file)).sandbox.kind is None
    assert file.read_text("utf-8").count("imports missing_") == 2


def test_a_name_leads_to_no_other_folder(tmp_path: Path) -> None:
    other, project = tmp_path / "other", tmp_path / "project"
    for folder in (other, project):
        folder.mkdir()
    (other / "x.py").write_text("import missing\n", encoding="utf-8")
    for name in (str(other), "../other", "a\\u001b]0;x"):
        text = PYPROJECT.replace("other-ext", name)
        (project / "pyproject.toml").write_text(text, encoding="utf-8")
        found = read_checkout(project)
        assert found is not None
        assert (found.name, found.undeclared) == (None, ())
    (project / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (project / "other_ext").symlink_to(other)
    (project / "src/other_ext").mkdir(parents=True)
    (project / "src/other_ext/x.py").symlink_to(other / "x.py")
    found = read_checkout(project)
    assert found is not None
    assert found.undeclared == ()


def test_of_many_imports_a_few_are_written_down(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(SETUP, encoding="utf-8")
    (tmp_path / "my_ext").mkdir()
    many = "".join(f"import m{number}\n" for number in range(1000))
    (tmp_path / "my_ext/a.py").write_text(many, encoding="utf-8")
    (tmp_path / "my_ext/b.py").write_text("#" * (5 << 20) + "\nimport large\n", encoding="utf-8")
    found = read_checkout(tmp_path)
    assert found is not None
    assert len(found.undeclared) == 20


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 5000,
        "a = " + "9" * 5000,
        "",
        "[project",
        "project = 1",
        PYPROJECT.replace("torch>=", "numpy>="),
        PYPROJECT.replace("torch>=", "torchyard>="),
        PYPROJECT.replace("other-ext", "torch"),
    ],
)
def test_what_is_not_compiled_against_torch_is_no_extension(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert read_checkout(tmp_path) is None


def test_init_reads_the_checkout_that_it_is_in(torchyard: Command, tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(SETUP, encoding="utf-8")
    file = tmp_path / "torchyard.toml"
    cell = ("--torch", "2.13", "--python", "cp311", "--platform", "linux-x86_64")
    assert torchyard("init", "-f", file, *cell).code == 0
    text = file.read_text(encoding="utf-8")
    for line in ("# The version is that of setup.py.", 'name = "my_ext"', 'path = "."'):
        assert f"{line}\n" in text
    cells = torchyard("plan", "-f", file, "--identifiers").out.split()
    assert cells == [
        f"my_ext-1.2.2/linux-x86_64/{compute}-torch2.13/cp311/wheel" for compute in ("cpu", "cu130")
    ]


def test_init_says_what_it_guessed(torchyard: Command, tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(SETUP.replace("'1.2.2'", "read()"), encoding="utf-8")
    file = tmp_path / "torchyard.toml"
    assert torchyard("init", "-f", file, "--name", "mine").code == 0
    text = file.read_text(encoding="utf-8")
    assert "# The version is a guess: correct it.\n" in text
    assert "# The name" not in text
