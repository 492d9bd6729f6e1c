"""Run `torchyard` in processes that are forked from one which has loaded its modules.

They have their own environment, directory, streams and exit code, as new processes do, for a
third of the CPU. Tests that are about starting, or about signals, start the program itself.
"""

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import NoReturn
from unittest import mock

from torchyard.cli.main import main
from torchyard.host.fork_server import ForkServer

TORCHYARD = (sys.executable, "-m", "torchyard")

_PREPARED = (
    *(f"torchyard.cli.commands.{name}" for name in ("build", "check", "plan", "publish", "run")),
    *("torchyard.app.build", "torchyard.app.run", "torchyard.engines.builtin.local"),
    *("torchyard.plan.build", "torchyard.reports.build.text", "rich.console"),
)
"""What most commands of tests load."""

_lock = threading.Lock()


def run_torchyard(
    words: Sequence[object], env: Mapping[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `torchyard` with these words, and return its output and exit code."""
    argv = list(map(str, words))
    if any(_starts_otherwise(*variable) for variable in env.items()):
        return subprocess.run(
            [*TORCHYARD, *argv], cwd=cwd, env=env, capture_output=True, text=True, check=False
        )
    request = json.dumps([dict(env), str(cwd or Path.cwd())])
    with Path(os.devnull).open("rb") as nothing, TemporaryFile() as out, TemporaryFile() as err:
        streams = {"stdin": nothing.fileno(), "stdout": out.fileno(), "stderr": err.fileno()}
        with _lock:
            process = _server().start([request, *argv], **streams)
        code = process.wait()
        texts = [(file.seek(0), file.read().decode())[1] for file in (out, err)]
    return subprocess.CompletedProcess([*TORCHYARD, *argv], code, *texts)


def _starts_otherwise(name: str, text: str) -> bool:
    """Return whether an interpreter with this variable starts otherwise than this one did."""
    is_read = name.startswith("PYTHON") and os.environ.get(name) != text
    return is_read or name.startswith("COVERAGE_")


@cache
def _server() -> ForkServer:
    """Start the server, which finds this module as tests do."""
    server = ForkServer(f"{__name__}:run_request", _PREPARED)
    with mock.patch.dict(os.environ, PYTHONPATH=str(Path(__file__).parents[1])):
        server._connected()
    atexit.register(server.close)
    return server


def run_request() -> NoReturn:
    """Be the command, in the fork."""
    env, cwd = json.loads(sys.argv[0])
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.modules["__main__"].__package__ = "torchyard"  # by which click knows the program's name
    sys.argv[0] = "__main__.py"
    main()
