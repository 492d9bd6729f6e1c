"""Shared helpers: configurations as text, and shortcuts from text to plan."""

import os
import sys
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple, Protocol

import msgspec
import pytest

from torchyard.cli.main import main
from torchyard.config.decode import decode
from torchyard.config.document import Document
from torchyard.config.evaluate import evaluate
from torchyard.config.tables import load_tables
from torchyard.model.config import Config
from torchyard.plan.build import make_plan
from torchyard.plan.graph import Plan
from torchyard.plan.select import EVERYTHING, PlanSelection
from torchyard.terminal import console

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/pytorch/torchyard.toml"

SMALL = """\
[project]
name = "torch"
version = "2.14.0"

[source]
git = "https://example.org/pytorch"
rev = "v2.14.0"

[matrix]
platform = ["linux-x86_64", "macos-arm64"]
compute = ["cpu", "cu130"]
blas = ["mkl", "accelerate"]
python = ["cp311", "cp312"]
package = ["wheel", "libtorch"]

[[matrix.exclude]]
python = "cp311"
compute = "cu*"
reason = "nobody wants it"

[subset.pr]
python = "cp312"
package = "wheel"

[[override]]
stage = "core"
compute = "cu130"
env = { USE_MAGMA = "0" }
needs = { memory = "64 GB", time = "2 h" }

[requirements.core]
memory = "16 GB"
time = "30 min"

[channel.nightly]
url = "file:///channels/nightly"
"""


class Output(NamedTuple):
    """The output and exit code of a command."""

    code: int
    out: str
    err: str


EXTENSION = """\
[project]
name = "torch-scatter"
version = "2.1.2"
recipe = "extension"
[source]
git = "https://example.org/torch-scatter"
rev = "2.1.2"
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu", "cu130"]
torch = ["torch2.13", "torch2.14"]
python = ["cp311", "cp312"]
package = ["wheel", "conda"]
"""


class Command(Protocol):
    """The command as a function."""

    def __call__(self, *args: object) -> Output: ...


def call_main(
    args: list[str], monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[bytes]
) -> Output:
    monkeypatch.setattr(sys, "argv", ["torchyard", *args])
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # else `python -m pytest`
    monkeypatch.setattr(console, "_used", set())
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capture.readouterr()
    code = ended.value.code
    assert isinstance(code, int)
    return Output(code, out.decode(), err.decode())


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder that all processes of a test run share."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def config_of(text: str, *changes: str, name: str = "torchyard.toml") -> Config:
    document = Document(name, text, changes)
    return evaluate(decode(document), document, load_tables())


def plan_of(text: str, selection: PlanSelection = EVERYTHING, *changes: str) -> Plan:
    return make_plan(config_of(text, *changes), selection)


def fingerprints(plan: Plan) -> dict[tuple[str, str], str]:
    """Fingerprints by stage and path, without the publish jobs, which depend on everything."""
    return {(job.stage, job.path): job.fingerprint for job in plan.jobs if job.stage != "publish"}


def to_toml(value: object) -> str:
    """Spell a value in one line of TOML; JSON's strings, numbers and lists are TOML's too."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{to_toml(k)} = {to_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    return msgspec.json.encode(value).decode()


def toml_text(document: dict[str, object]) -> str:
    return "".join(f"{to_toml(key)} = {to_toml(value)}\n" for key, value in document.items())


WORKS = """\
[project]
name = "demo"
version = "1.0"

[source]
path = "code"

[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
blas = ["openblas"]
python = ["cp311", "cp312"]
package = ["wheel"]

[[steps.core]]
name = "compile"
run = "mkdir -p {out}/lib; cat {source}/*.txt > {out}/lib/core.bin"
outputs = ["lib/*.bin"]

[[steps.core]]
name = "list"
run = ["sh", "-c", "ls {out}/lib > {out}/listing"]

[[steps.bindings]]
run = "cat {core}/lib/core.bin > {out}/{python}.bin; echo {python} >> {out}/{python}.bin"

[[steps.package]]
run = '''
cp {bindings}/*.bin {spec} .
touch -d @$SOURCE_DATE_EPOCH *
python3 -m zipfile -c {out}/demo-{version}-{python}.whl *
'''
outputs = ["*.whl"]

[steps]
check = []
smoke = []
"""
"""A project whose steps take no time: made-up commands in place of compilers."""

CORE = "core:demo-1.0/linux-x86_64/cpu-openblas"
PACKAGE = "package:demo-1.0/linux-x86_64/cpu-openblas/cp312/wheel"


def without_sandbox(text: str) -> str:
    """Return a configuration that lets steps reach the files that it names."""
    is_needed = (gettempdir() in text or "../.." in text) and "[sandbox]" not in text
    return f'{text}\n[sandbox]\nkind = "none"\n' if is_needed else text


def make_project(folder: Path, text: str = WORKS) -> Path:
    """Write a project that can be built, and return its file.

    Steps that use files of the test, such as to wait for one, run without a sandbox.
    """
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "a.txt").write_text("some code\n", encoding="utf-8")
    (folder / "code" / "b.txt").write_text("more code\n", encoding="utf-8")
    file = folder / "torchyard.toml"
    file.write_text(without_sandbox(text), encoding="utf-8")
    return file
