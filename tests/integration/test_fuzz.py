"""Some inputs for each target, the same each time; `bash .ci/run nightly` tries new ones.

CI starts one target, so that the harness works at night; `tests/unit/test_fuzz_corpus.py` passes
the corpora of all of them to the same laws.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in ROOT.glob("tests/fuzz/fuzz_*.py"))
INPUTS = 200
"""Those of the corpus, and what libFuzzer makes of them."""

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        find_spec("atheris") is None, reason="atheris is not installed: not on this Python, or here"
    ),
]


@pytest.mark.parametrize(
    "target",
    [pytest.param(name, marks=[] if name == "foreign" else pytest.mark.slow) for name in TARGETS],
)
def test_some_hundred_inputs_break_nothing(tmp_path: Path, target: str) -> None:
    learnt = tmp_path / "learnt"
    learnt.mkdir()
    command = [sys.executable, "tests/fuzz/run.py", target, str(learnt)]
    options = ["-seed=1", f"-runs={INPUTS}", f"-artifact_prefix={tmp_path}/"]
    unmeasured = {name: v for name, v in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        [*command, *options],
        cwd=ROOT,
        env=unmeasured,
        check=False,
        text=True,
        capture_output=True,
        timeout=600,
    )
    inputs = " ".join(str(path) for path in tmp_path.iterdir() if path.is_file())
    again = f"{sys.executable} tests/fuzz/run.py {target} {inputs}"
    assert done.returncode == 0, f"{done.stderr[-5000:]}\nto try it again: {again}"
    assert f"Done {INPUTS} runs" in done.stderr
