"""Operators of an extension are tried with a real torch."""

import json
from pathlib import Path

import pytest
from tests.support.helpers import Command
from tests.support.installers import FreshEnvironment
from tests.support.made_wheel import make_wheel

pytestmark = [pytest.mark.integration, pytest.mark.slow]

OPERATORS = """
import os, signal, torch

lib = torch.library.Library("pyext", "DEF")
lib.define("good(Tensor x, int k=2) -> Tensor")
lib.define("gather(Tensor x, Tensor index, *, bool flag) -> Tensor")
lib.define("strict(Tensor x) -> Tensor")
lib.define("words(str s) -> Tensor")
lib.impl("good", lambda x, k=2: x * k, "CPU")
lib.impl("gather", lambda x, index, *, flag: x.gather(0, index), "CPU")

def strict(x):
    raise ValueError("x has to be something else")

lib.impl("strict", strict, "CPU")
lib.define("crash(Tensor x) -> Tensor")
lib.impl("crash", lambda x: os.kill(os.getpid(), signal.SIGSEGV), "CPU")
"""
REFUSED = "it refuses made-up arguments: ValueError: x has to be something else"


def test_operators_are_called_and_a_crash_is_told(torchyard: Command, tmp_path: Path) -> None:
    asked = FreshEnvironment(tmp_path / "fresh", own_settings=True)
    if "+cpu" not in asked.resolve("pip install --no-deps 'torch==2.13.*'"):
        pytest.skip("the index has no torch without CUDA, which is 3 GB")
    wheel = make_wheel(tmp_path, "pyext", "1.0", requires=["torch==2.13.*"], text=OPERATORS)
    words = ("--installer", "pip", "--environment", "clean", "--level", "ops", "--json")
    done = torchyard("smoke", wheel, *words)
    assert done.code == 14, done.err
    (package,) = json.loads(done.out)["packages"]
    (test,) = (one for one in package["runs"][0]["tests"] if "operators" in one["test"])
    assert test["outcome"] == "failed"
    assert "calling pyext::crash ends the process" in test["why"]
    said = [line for line in test["output"].splitlines() if line.startswith("pyext::")]
    assert said == [
        "pyext::crash: ended by SIGSEGV",
        "pyext::gather: called",
        "pyext::good: called",
        f"pyext::strict: not tried, as {REFUSED}",
        "pyext::words: not tried, as it takes str",
    ]
