"""Shells complete values, cells and jobs of the file."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.helpers import make_project

ASKED = {
    "c": ["cpu", "cpu-openblas", "cp311", "cp312", "check", "core"],
    "core:": ["core:linux-x86_64/cpu-openblas", "core:demo-1.0/linux-x86_64/cpu-openblas"],
    "bindings:li": [f"bindings:linux-x86_64/cpu-openblas/{name}" for name in ("cp311", "cp312")],
}
SCRIPTS = {
    "bash": """
eval "$(_TORCHYARD_COMPLETE=bash_source torchyard)"
COMP_WORDS=(torchyard {command} $(sed 's/:/ : /' <<< {word}))
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_torchyard_completion torchyard; printf '%s\\n' "${{COMPREPLY[@]}}"
""",
    "zsh": """
compdef() {{ }}; compadd() {{ print -l $completions; }}
eval "$(_TORCHYARD_COMPLETE=zsh_source torchyard)"
words=(torchyard {command} {word}); CURRENT=$#words; _torchyard_completion
""",
    "fish": """
_TORCHYARD_COMPLETE=fish_source torchyard | source
complete --do-complete 'torchyard {command} {word}' | cut -f 1
""",
}


@pytest.mark.parametrize("shell", SCRIPTS)
@pytest.mark.parametrize(
    ("command", "word"),
    [("build", "c"), ("explain", "bindings:li"), ("store ls", "core:")],
)
def test_shells_complete_names(shell: str, command: str, word: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    make_project(tmp_path)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    script = SCRIPTS[shell].format(command=command, word=word)
    env = {"PATH": path, "HOME": str(tmp_path)}
    done = subprocess.run(
        [shell, "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    kept = word.rpartition(":")[1] and word.rpartition(":")[0] + ":" if shell == "bash" else ""
    assert {kept + line for line in done.stdout.split()} == set(ASKED[word]), done.stderr
