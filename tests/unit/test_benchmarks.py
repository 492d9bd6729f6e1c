"""The benchmark compares like with like."""

import subprocess
import sys

from tests.helpers import ROOT


def test_the_bare_loop_hashes_what_the_planner_hashes() -> None:
    code = "import million; million.check_same_bytes()"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT / "benchmarks", check=True)
