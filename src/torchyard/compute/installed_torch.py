"""The torch of a Python environment, read from its files: torch itself is never imported."""

import ast
import os
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import Distribution
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from torchyard.compute.registry import PLAIN, compute_in, compute_platforms
from torchyard.errors import HostError
from torchyard.host.process import capture
from torchyard.model.values import Value

_VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX")
_PROGRAMS = ("bin/python3", "bin/python", "Scripts/python.exe", "python.exe")
_ASK = """
import json, sys, sysconfig
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, distributions
from importlib.util import find_spec
sys.path[:] = [path for path in sys.path if path]
spec = find_spec("torch")
try:
    listed = str(distribution("torch")._path)
except (PackageNotFoundError, AttributeError):
    listed = ""
versions = {}
for item in distributions():
    with suppress(FileNotFoundError):  # of METADATA: since Python 3.15
        versions.setdefault(item.metadata["Name"] or "", item.version or "")
print(json.dumps({
    "executable": sys.executable,
    "version": "%d.%d" % sys.version_info[:2],
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "folder": next(iter(spec.submodule_search_locations or [""])) if spec else "",
    "dist_info": listed,
    "versions": versions,
}))
"""
_HINT = "activate the environment of your torch: `source .venv/bin/activate`"


class InstalledTorch(Value, kw_only=True):
    """A torch in an environment."""

    version: str
    """Without its local part: `2.13.0`."""
    label: str
    """With the local part from torch's own files: `2.13.0+cu130`. PyPI's metadata may lack it."""
    compute: str
    """`cu130`, `cpu`: what it was compiled for, regardless of its label."""
    folder: str
    """The folder of the package `torch`."""

    @property
    def release(self) -> str:
        """Its minor release: `2.13`."""
        return ".".join(map(str, Version(self.version).release[:2]))


class PythonEnvironment(Value, kw_only=True):
    """A Python, its packages, and its torch if it has one."""

    executable: str
    python: str
    """As in a wheel's tags: `cp312`, `cp313t`."""
    versions: dict[str, str] = {}
    """The versions in its packages' metadata, by normalized names."""
    torch: InstalledTorch | None = None


class _Answer(Value, kw_only=True):
    executable: str
    versions: dict[str, str]
    version: str
    free_threaded: bool
    folder: str
    dist_info: str


def active_python(variables: Mapping[str, str] = os.environ) -> Path:
    """Return the Python of the activated environment, else that of PATH, else torchyard's."""
    for name in _VARIABLES:
        if folder := variables.get(name):
            programs = [Path(folder, program) for program in _PROGRAMS]
            found = next((program for program in programs if program.is_file()), None)
            if found is None:
                msg = f"{name} is `{folder}`, which has no Python"
                raise HostError(msg, hint=_HINT)
            return found
    names = (shutil.which(name, path=variables.get("PATH", "")) for name in ("python3", "python"))
    return Path(next(filter(None, names), sys.executable))


def read_environment(python: Path) -> PythonEnvironment:
    """Run a Python to list its packages and find its torch, without importing torch.

    Raise HostError if the Python does not run, or if its torch can't be read.
    """
    try:
        answer = msgspec.json.decode(
            capture([str(python), "-c", _ASK], cwd=Path("/")), type=_Answer
        )
    except (HostError, msgspec.MsgspecError) as error:
        msg = f"`{python}` could not be inspected: {error}"
        raise HostError(msg, hint="is it a CPython of version 3.9 or newer?") from error
    versions = {canonicalize_name(name): version for name, version in answer.versions.items()}
    return PythonEnvironment(
        executable=answer.executable or str(python),
        python=f"cp{answer.version.replace('.', '')}{'t' * answer.free_threaded}",
        versions={name: version for name, version in versions.items() if version},
        torch=read_torch_folder(answer.folder, answer.dist_info) if answer.folder else None,
    )


def read_torch_folder(folder: str, dist_info: str = "") -> InstalledTorch | None:
    """Return the torch in a package `torch`, by its `version.py`, else by its metadata.

    A folder `torch` with neither is not PyTorch.
    """
    names = _assignments(Path(folder, "version.py"))
    label = names.get("__version__", "") or (_metadata_version(dist_info) if dist_info else "")
    if not label:
        return None
    try:
        version = Version(label)
    except InvalidVersion as error:
        msg = f"the torch in `{folder}` has the invalid version `{label}`"
        raise HostError(msg, hint="install torch anew") from error
    return InstalledTorch(
        version=version.public,
        label=label,
        compute=_compiled_for(names) or compute_in(version.local or "") or PLAIN,
        folder=folder,
    )


def _compiled_for(names: Mapping[str, str]) -> str:
    """Return the compute of the toolkit's version in `version.py`, or ""."""
    for platform in compute_platforms():
        version = names.get(platform.torch_version, "")
        if version:
            return platform.compute_of_version(version)
    return ""


def _assignments(path: Path) -> dict[str, str]:
    """Return the string assignments of a Python file, which is parsed, not run."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    found = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(value))):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(value))):
                found[name] = value
            case _:
                pass
    return found


def _metadata_version(dist_info: str) -> str:
    try:
        return str(Distribution.at(dist_info).metadata["Version"] or "")
    except (OSError, KeyError):
        return ""
