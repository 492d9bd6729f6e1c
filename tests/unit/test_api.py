"""The Python API: `from torchyard import …`."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.helpers import SMALL

import torchyard
from torchyard import Plan, TorchyardError, check_packages, plan_packages, publish_packages
from torchyard.errors import ConfigError, SelectionError

FUNCTIONS = [name for name in torchyard.__all__ if name[0].islower()]


def test_every_name_can_be_imported_and_no_other() -> None:
    assert all(getattr(torchyard, name) for name in torchyard.__all__)
    assert set(torchyard.__all__) <= set(dir(torchyard))
    with pytest.raises(AttributeError, match="nothing"):
        _ = torchyard.nothing


def test_types_and_imports_name_the_same_modules() -> None:
    """What mypy sees is what is imported."""
    tree = ast.parse(inspect.getsource(torchyard))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {name: f"torchyard.{path}" for name, path in torchyard._MODULES.items()}
    assert {*seen, "__version__"} == set(torchyard.__all__)


def test_importing_torchyard_imports_nothing_else() -> None:
    code = "import sys, torchyard; torchyard.__version__; "
    code += "print(sorted(name for name in sys.modules if name.startswith('torchyard')))"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout == "['torchyard', 'torchyard.version']\n"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_is_typed_and_explained(name: str) -> None:
    function = getattr(torchyard, name)
    signature, text = inspect.signature(function), inspect.getdoc(function) or ""
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty
        assert f"    {parameter.name}: " in text


def test_a_plan_is_returned(tmp_path: Path) -> None:
    file = tmp_path / "torchyard.toml"
    file.write_text(SMALL, encoding="utf-8")
    plan = plan_packages(str(file), select=["cu130"], changes=["project.version=2.13.0"])
    assert isinstance(plan, Plan)
    assert plan.label == "torch-2.13.0"
    assert {cell.path.split("/")[1] for cell in plan.cells()} == {"cu130-mkl"}


def test_errors_are_those_of_the_commands(tmp_path: Path) -> None:
    file = tmp_path / "torchyard.toml"
    file.write_text(SMALL, encoding="utf-8")
    with pytest.raises(ConfigError) as wrong:
        plan_packages(str(file), changes=["matrix.pyton=cp311"])
    assert wrong.value.exit_code == 3
    with pytest.raises(TorchyardError) as unknown:
        plan_packages(str(file), subset="nigthly")
    assert isinstance(unknown.value, SelectionError)
    with pytest.raises(SelectionError, match="names no rule"):
        check_packages([], rules=["no-such-rule"])
    with pytest.raises(SelectionError, match="there is no package"):
        publish_packages(str(tmp_path / "channel"), [tmp_path], file=str(tmp_path / "none.toml"))
