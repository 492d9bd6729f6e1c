"""Refuse a build that compiled nothing, with the switches that the project asks for."""

import os
from pathlib import Path

from torchyard.errors import BuildError
from torchyard.toolchain.reading.project import read_project

_NAMED = 3
"""How many switches are named; the one that compiles is rarely far down in setup.py."""


def check_compiled(image: Path, project: Path) -> None:
    """Refuse an unpacked wheel without an extension module."""
    if any(image.rglob("*.so")):
        return
    msg = "the project's backend compiled nothing: its wheel has no extension module"
    switches = [one for one in read_project(project).switches if "*" not in one.text]
    hint = "look further up in the log: many projects leave their C++ code out without an error"
    unset = (one for one in switches if os.environ.get(one.text) != (one.expects or "1"))
    if own := [one for one in unset if not one.is_cmake][:_NAMED]:
        named = ", ".join(f"{one.text} ({one.file}:{one.line})" for one in own)
        env = f'{own[0].text} = "{own[0].expects or 1}"'
        hint = f"its build asks for {named}. In torchyard.toml:\n"
        hint += f'    [[override]]\n    stage = "bindings"\n    env = {{ {env} }}'
    raise BuildError(msg, hint=hint)
