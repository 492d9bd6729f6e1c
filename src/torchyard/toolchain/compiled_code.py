"""Refuse a build that compiled nothing, and name the switches that the project reads."""

import os
from pathlib import Path

from torchyard.errors import BuildError
from torchyard.toolchain.reading.project import read_project

_NAMED = 3
"""The number of switches to name; the relevant one is usually at the top of setup.py."""


def check_compiled(image: Path, project: Path) -> None:
    """Refuse an unpacked wheel without an extension module."""
    if any(image.rglob("*.so")):
        return
    msg = "the project's backend compiled nothing: its wheel has no extension module"
    switches = [switch for switch in read_project(project).switches if "*" not in switch.text]
    hint = "look further up in the log: many projects skip their C++ code without an error"
    unset = (s for s in switches if os.environ.get(s.text) != (s.expects or "1"))
    if missing := [s for s in unset if not s.is_cmake][:_NAMED]:
        named = ", ".join(f"{s.text} ({s.file}:{s.line})" for s in missing)
        env = f'{missing[0].text} = "{missing[0].expects or 1}"'
        hint = f"its build reads {named}. In torchyard.toml:\n"
        hint += f'    [[override]]\n    stage = "bindings"\n    env = {{ {env} }}'
    raise BuildError(msg, hint=hint)
