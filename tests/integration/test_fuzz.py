"""A minute of fuzzing, each time from the same seed; tests/fuzz/run.py goes on for longer."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in ROOT.glob("tests/fuzz/fuzz_*.py"))
AT_ONCE = 2
SECONDS = 60 * AT_ONCE // len(TARGETS)
"""All targets together take a minute."""

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        find_spec("atheris") is None, reason="atheris is not installed: not on this Python, or here"
    ),
]


def fuzz(target: str, folder: Path) -> tuple[str, int, str]:
    """Fuzz a target; its name, its status, and what it told."""
    learnt = folder / target
    learnt.mkdir()
    command = [sys.executable, "tests/fuzz/run.py", target, str(learnt)]
    options = ["-seed=1", f"-max_total_time={SECONDS}", f"-artifact_prefix={folder}/{target}-"]
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
    return target, done.returncode, done.stderr


def test_a_minute_finds_nothing(tmp_path: Path) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda target: fuzz(target, tmp_path), TARGETS))
    for target, status, told in done:
        inputs = " ".join(str(path) for path in tmp_path.glob(f"{target}-*") if path.is_file())
        again = f"{sys.executable} tests/fuzz/run.py {target} {inputs}"
        assert status == 0, f"{told[-5000:]}\nto try it again: {again}"
        assert "Done " in told
