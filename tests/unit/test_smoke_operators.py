"""The test of an extension's operators, with a torch that has just what it asks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchyard.smoke.attempt import NOTE
from torchyard.smoke.suite import built_in

TORCH = """
import types

known = {}
int64 = "int64"


class Tensor(list):
    def clone(self):
        return Tensor(self)


def ones(*shape):
    return Tensor(["float", len(shape)])


def zeros(*shape, dtype):
    return Tensor([dtype, len(shape)])


class Space:
    def __init__(self, name):
        self.name = name

    def __getattr__(self, name):
        return types.SimpleNamespace(default=known[f"{self.name}::{name}"])


class Ops:
    def __getattr__(self, name):
        return Space(name)


class Argument:
    def __init__(self, name, kind, kwarg_only, default):
        self.name, self.type, self.kwarg_only, self.default = name, kind, kwarg_only, default

    def has_default_value(self):
        return self.default


ops = Ops()
_C = types.SimpleNamespace(_dispatch_get_all_op_names=lambda: list(known))


def define(name, function, *arguments):
    def call(*given, **named):
        return function(*given, **named)

    call._schema = types.SimpleNamespace(arguments=[Argument(*one) for one in arguments])
    known[name] = call


define("aten::old", None)
"""
X = '("x", "Tensor", False, False)'


def tried(folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """Run the test for a module that defines operators."""
    for name, text in (("torch", TORCH), ("ext", "import os, signal, torch\n" + "\n".join(lines))):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(text, encoding="utf-8")
    (test,) = built_in("with_torch")
    env = {**os.environ, "PYTHONPATH": str(folder), "TORCHYARD_SMOKE_MODULES": "ext"}
    env["TORCHYARD_SMOKE_OWN"] = "ext"
    return subprocess.run(
        [sys.executable, test.path], env=env, capture_output=True, text=True, check=False
    )


def test_operators_are_found_and_called(tmp_path: Path) -> None:
    done = tried(
        tmp_path,
        f'torch.define("ext::plain", lambda x, k=2: x, {X}, ("k", "int", False, True))',
        f'torch.define("ext::named", lambda x, *, f: x, {X}, ("f", "bool", True, False))',
        "def pick(x, index):",
        "    assert (x[1], index[0]) == (1, 'int64'), 'indexes are integers'",
        f'torch.define("ext::pick", pick, {X}, {X.replace("x", "index", 1)})',
        'torch.define("ext::text", None, ("s", "str", False, False))',
        "def never(x):",
        "    raise ValueError('no such thing')",
        f'torch.define("ext::never", never, {X})',
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "ext::named: called",
        "ext::never: not tried, as it refuses made-up arguments: ValueError: no such thing",
        "ext::pick: called",
        "ext::plain: called",
        "ext::text: not tried, as it takes str",
        f"{NOTE}5 operators: 3 called, 2 not tried",
    ]


def test_functions_of_compiled_modules_are_called_by_their_signatures(tmp_path: Path) -> None:
    """As several versions of pybind11 write them."""
    signatures = {
        "old": "old(arg0: at::Tensor, arg1: int, arg2: Optional[at::Tensor]) -> at::Tensor\\n",
        "new": "new(x: torch.Tensor, k: typing.SupportsInt | typing.SupportsIndex,"
        " m: torch.Tensor | None, s: typing.SupportsFloat = 1.0) -> torch.Tensor\\n",
        "text": "text(arg0: str) -> str",
        "docs": "What has no signature.",
        "free": "free(handle: int) -> None",
    }
    lines = [
        f"def {one}(*given): pass\n{one}.__doc__ = '{said}'" for one, said in signatures.items()
    ]
    lines.append("free.__code__ = (lambda handle: os.kill(os.getpid(), signal.SIGSEGV)).__code__")
    lines.insert(0, "import os, signal")
    for name in ("made.py", "other.py"):
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    own = ("import made, sys", "made.__name__ = 'ext.made'", "sys.modules['ext.made'] = made")
    done = tried(tmp_path, *own, "import other", "made.__file__ = other.__file__ = 'made.so'")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "ext.made.old: called",
        "ext.made.new: called",
        "ext.made.text: not tried, as it takes str",
        "ext.made.free: not tried, as a made-up number may stand for an address",
        f"{NOTE}4 operators: 2 called, 2 not tried",
    ]


@pytest.mark.parametrize(
    ("code", "ended"),
    [("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"), ("os._exit(3)", "exit code 3")],
)
def test_an_operator_that_ends_the_process_fails(tmp_path: Path, code: str, ended: str) -> None:
    lines = (
        f'torch.define("ext::bad", lambda x: {code}, {X})',
        f'torch.define("ext::ok", id, {X})',
    )
    done = tried(tmp_path, *lines)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [f"ext::bad: ended by {ended}", "ext::ok: called"]
    assert done.stderr.splitlines()[-1] == "AssertionError: calling ext::bad ends the process"


def test_an_extension_without_operators_passes(tmp_path: Path) -> None:
    done = tried(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{NOTE}0 operators\n"
