"""The variables of a program in a sandbox, which are not those of the bwrap that makes it.

bwrap runs outside of the sandbox. By variables such as LD_PRELOAD, a step could load code of its
own into it. So bwrap gets no environment, and reads the variables for its program from a file
handle: other processes could see its arguments. Nor does it pass on keys of the caller's session.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.keyring import leave_session_keyring
from torchyard.host.process import replace_process


def with_variables(argv: Sequence[str], env: Mapping[str, str]) -> tuple[list[str], int]:
    """Return the command of bwrap with variables for its program, and the handle that has these.

    It is to be started with the handle and an empty environment, and the handle to be closed.
    """
    for name, value in env.items():
        if "\0" in name or "\0" in value:  # what follows would be an option of bwrap
            msg = f"the variable `{name}` has a NUL character, which no program can be given"
            raise HostError(msg)
    leave_session_keyring()
    options = (word for name, value in env.items() for word in ("--setenv", name, value))
    handle = os.memfd_create("variables")
    with open(handle, "wb", closefd=False) as file:
        file.write(b"".join(os.fsencode(word) + b"\0" for word in options))
    os.lseek(handle, 0, os.SEEK_SET)
    return [argv[0], "--args", str(handle), *argv[1:]], handle


def replace_by_sandboxed(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
    """Exec bwrap in place of this program, in the same terminal, with variables for its program."""
    words, handle = with_variables(argv, env)
    os.set_inheritable(handle, True)  # noqa: FBT003 - it has no name
    replace_process(words, cwd=cwd, env={})
