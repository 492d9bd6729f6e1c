"""What works on a system that is not like Linux: plans can be made anywhere."""

import subprocess
import sys

from tests.support.helpers import EXAMPLE

_WINDOWS = """
import platform, sys
platform.system = lambda: "Windows"
for name in ("fcntl", "termios", "resource", "pwd", "grp"):
    sys.modules[name] = None  # so that importing it fails, as on Windows
from torchyard.cli.main import main
main()
"""


def test_a_plan_is_made_without_what_windows_lacks() -> None:
    argv = [sys.executable, "-c", _WINDOWS, "plan", "--subset", "pr", "--json"]
    argv += ["-f", str(EXAMPLE)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
