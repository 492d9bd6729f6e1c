"""The Python environment that the caller works in, and the torch that it has.

Its Python is run to list its packages. torch is not imported, which would take seconds, and needs
the libraries of a GPU.
"""

import ast
import os
import shutil
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from torchyard.errors import HostError
from torchyard.host.process import capture
from torchyard.model.values import Value
from torchyard.toolchain.interpreters import query_interpreter

_VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX")
_HINT = "activate the environment that has your torch: `source .venv/bin/activate`"
_ASK = """
import importlib.metadata, json, os, sys
found = {}
for one in importlib.metadata.distributions():
    found.setdefault(one.metadata["Name"] or "", one.version)
text = ""
for folder in sys.path[1:]:
    path = os.path.join(folder, "torch", "version.py")
    if os.path.isfile(path):
        text = open(path, encoding="utf-8").read()
        break
print(json.dumps({"versions": found, "torch": text}))
"""


class _Answer(Value, kw_only=True):
    versions: dict[str, str | None]
    torch: str


class ActiveEnvironment(Value, kw_only=True):
    """A Python environment.

    `python` is its interpreter, and `tag` the name of that in a wheel's tags. `versions` has its
    packages, and `torch` what `torch/version.py` says: `__version__`, `cuda`, `hip`.
    """

    python: str
    tag: str
    versions: dict[str, str] = {}
    torch: dict[str, str] = {}

    @property
    def torch_version(self) -> str:
        """The version of its torch; empty if it has none."""
        return self.versions.get("torch") or self.torch.get("__version__", "")


def read_active_environment() -> ActiveEnvironment:
    """Return the environment that is active, or else that of the Python in PATH."""
    python = _active_python()
    try:
        interpreter = query_interpreter(python)
        said = capture([str(python), "-c", _ASK], cwd=Path("/"))
        answer = msgspec.json.decode(said, type=_Answer)
    except (HostError, msgspec.MsgspecError) as error:
        msg = f"`{python}` does not work as a Python: {error}"
        raise HostError(msg, hint=_HINT) from error
    return ActiveEnvironment(
        python=str(python),
        tag=interpreter.tag,
        versions={
            canonicalize_name(name): version for name, version in answer.versions.items() if version
        },
        torch=read_constants(answer.torch),
    )


def _active_python() -> Path:
    for name in _VARIABLES:
        if folder := os.environ.get(name):
            program = Path(folder, "bin/python")
            if not program.is_file():
                msg = f"{name} is `{folder}`, which has no bin/python"
                raise HostError(msg, hint=_HINT)
            return program
    found = shutil.which("python") or shutil.which("python3")
    if found is None:
        msg = "no Python environment is active, and PATH has no Python"
        raise HostError(msg, hint=_HINT)
    return Path(found)


def read_constants(text: str) -> dict[str, str]:
    """Return the names that a module sets to texts; it is not run."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, str] = {}
    for line in body:
        targets = line.targets if isinstance(line, ast.Assign) else []
        if isinstance(line, ast.AnnAssign):
            targets = [line.target]
        value = line.value if isinstance(line, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            found |= {name.id: value.value for name in targets if isinstance(name, ast.Name)}
    return found
