"""Environments of cells outside of jobs, and scripts that shells source.

The scripts set variables, and define a function that restores them.
"""

import os
import re
import shlex
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from torchyard.errors import ConfigError
from torchyard.host.locks import replace_bytes
from torchyard.model.values import Value
from torchyard.toolchain.variables import LISTS

UNDO = "torchyard_deactivate"
"""The function that restores the variables of the shell."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN = "_torchyard_"
"""The prefix of the script's own variables, which keep the old values."""


class Shell(StrEnum):
    """A supported shell."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class EnvironmentPart(Value, kw_only=True):
    """A compiler or library, and its path; empty if compilers find it by themselves."""

    part: str
    identity: str
    path: str


class CellEnvironment(Value, kw_only=True):
    """An installed environment."""

    cell: str
    folder: str
    parts: tuple[EnvironmentPart, ...]
    variables: dict[str, str]

    def script(self, shell: Shell) -> Path:
        """Return the script to source in a shell."""
        return Path(self.folder, f"activate.{shell}")


def own_shell() -> Shell:
    """Return the shell of this process's user."""
    name = os.environ.get("SHELL", "").rpartition("/")[2]
    return Shell(name) if name in list(Shell) else Shell.BASH


def write_scripts(made: CellEnvironment) -> None:
    """Write the scripts to source, one for each shell."""
    for shell in Shell:
        replace_bytes(made.script(shell), os.fsencode(activation_script(shell, made)))


class _Dialect(NamedTuple):
    """The syntax of a shell; `change` and `restore` are lines for one variable."""

    change: Callable[[str, str], str]
    restore: Callable[[str], str]
    frame: str


def activation_script(shell: Shell, made: CellEnvironment) -> str:
    """Return the script of an environment; its folders precede those in search paths.

    It can be sourced again, even after that of another environment: each first restores what the
    last one changed. So `torchyard_deactivate` always restores the state before the first one:
    values, even empty ones, and whether a variable was set and exported.
    """
    dialect, changes, restored = _DIALECTS[shell], [], []
    for name, value in sorted(made.variables.items()):
        if not _NAME.fullmatch(name) or name.startswith(_OWN):
            msg = f"shells can't set a variable `{name}`"
            raise ConfigError(msg, hint="rename it in `env` of the file")
        if "\0" in value:
            msg = f"the value of `{name}` has a NUL character, which no variable can have"
            raise ConfigError(msg, hint="remove it in `env` of the file")
        changes.append(dialect.change(name, value))
        restored.append(dialect.restore(name))
    cell = re.sub(r"[^ -~]", "?", made.cell)  # for a comment of one line
    return dialect.frame.format(
        cell=cell, undo=UNDO, changes="".join(changes), restored="".join(restored)
    )


def _bash_change(name: str, value: str) -> str:
    rest = f'"${{{name}:+:${name}}}"' if name in LISTS else ""
    return (
        f"{_OWN}{name}=$(declare -p {name} 2>/dev/null) || :\n"
        f"export {name}={shlex.quote(value)}{rest}\n"
    )


def _bash_restore(name: str) -> str:
    saved = f"{_OWN}{name}"
    return (
        f"    unset -v {name}\n"
        f'    eval "${{{saved}/#declare /declare -g }}"\n'
        f"    unset -v {saved}\n"
    )


_BASH = """\
# The environment of {cell}.
# `{undo}` restores what was before.
if declare -F {undo} >/dev/null; then {undo}; fi
{changes}{undo}() {{
{restored}    unset -f {undo}
    hash -r 2>/dev/null || :
}}
hash -r 2>/dev/null || :
"""


def _zsh_change(name: str, value: str) -> str:
    rest = f'"${{{name}:+:${name}}}"' if name in LISTS else ""
    return (
        f"    typeset -g {_OWN}{name}=${{{name}-}} {_OWN}type_{name}=${{(t){name}-}}\n"
        f"    export {name}={shlex.quote(value)}{rest}\n"
    )


def _zsh_restore(name: str) -> str:
    saved, kind = f"{_OWN}{name}", f"{_OWN}type_{name}"
    return (
        f"    if [[ -n ${kind} ]]; then\n"
        f"        typeset -g {name}=${saved}\n"
        f"        [[ ${kind} == *export* ]] || typeset -g +x {name}\n"
        f"    else\n"
        f"        unset {name}\n"
        f"    fi\n"
        f"    unset {saved} {kind}\n"
    )


_ZSH = """\
# The environment of {cell}.
# `{undo}` restores what was before.
if (( ${{+functions[{undo}]}} )); then {undo}; fi
() {{
    emulate -L zsh
{changes}    rehash
}}
{undo}() {{
    emulate -L zsh
{restored}    unfunction {undo}
    rehash
}}
"""


def _fish_change(name: str, value: str) -> str:
    saved = f"{_OWN}{name}"
    lines = [
        f"if set -qg {name}",
        f"    set -g {saved} ${name}",
        f"    set -qgx {name}; and set -g {_OWN}exported_{name}",
        "end",
    ]
    if name in LISTS:
        folders = " ".join(map(_fish_quote, value.split(":")))
        lines += [
            f'if test -n "${name}"',
            f"    set -gx {name} {folders} ${name}",
            "else",
            f"    set -gx {name} {folders}",
            "end",
        ]
    else:
        lines.append(f"set -gx {name} {_fish_quote(value)}")
    return "".join(f"{line}\n" for line in lines)


def _fish_restore(name: str) -> str:
    saved, exported = f"{_OWN}{name}", f"{_OWN}exported_{name}"
    return (
        f"    set -eg {name}\n"
        f"    if set -qg {exported}\n"
        f"        set -gx {name} ${saved}\n"
        f"    else if set -qg {saved}\n"
        f"        set -g {name} ${saved}\n"
        f"    end\n"
        f"    set -eg {saved} {exported}\n"
    )


def _fish_quote(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_FISH = """\
# The environment of {cell}.
# `{undo}` restores what was before.
functions -q {undo}; and {undo}
{changes}function {undo}
{restored}    functions -e {undo}
end
"""

_DIALECTS = {
    Shell.BASH: _Dialect(_bash_change, _bash_restore, _BASH),
    Shell.ZSH: _Dialect(_zsh_change, _zsh_restore, _ZSH),
    Shell.FISH: _Dialect(_fish_change, _fish_restore, _FISH),
}
