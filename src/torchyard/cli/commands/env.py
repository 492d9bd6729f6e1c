"""`torchyard env`: the toolchain of a cell, for a shell outside of any job."""

import os
from pathlib import Path

import click

from torchyard.cli.lazy_group import Invocation
from torchyard.cli.options import file_option, selector_argument, set_option
from torchyard.terminal.console import say, show, write
from torchyard.workspace.arguments import refuse_given

_JSON = "json"


@click.command("env")
@selector_argument
@file_option
@set_option
@click.option(
    "--install", metavar="DIR", help="Directory of environments, in place of .torchyard/env."
)
@click.option(
    "--shell",
    type=click.Choice(["bash", "zsh", "fish", _JSON]),
    help="Print the script to source, or the variables for programs.",
)
@click.option("--diff", is_flag=True, help="Show which variables of this shell would change.")
def command(
    *,
    words: tuple[str, ...],
    file: str,
    changes: tuple[str, ...],
    install: str | None,
    shell: str | None,
    diff: bool,
) -> None:
    """Lay out the toolchain of a cell as a place to work in, and print how to enter it.

    That is all that its jobs compile with: the compiler by its plain names, CMake, ninja, CUDA or
    ROCm, BLAS, and a Python environment with the build requirements and pip. SELECTOR leaves
    one Python of one block, such as cpu-mkl/cp312; it can be left out if the file has no other.

    Source the script that is named; `torchyard_deactivate` restores the shell. Nothing of the
    system is changed. What is there already is not installed again.
    """
    from torchyard.app.cell_environment import lay_out_environment
    from torchyard.toolchain.activation import Shell, activation_script

    click.get_current_context().ensure_object(Invocation).as_json = shell == _JSON
    if diff:
        refuse_given({"--shell": shell}, "prints something else than --diff")
    made = lay_out_environment(file, words, changes=changes, install=install, say=say)
    if shell == _JSON:
        from torchyard.reports.environment.document import environment_document
        from torchyard.terminal.json_output import encode

        write(encode(environment_document(made)))
    elif shell is not None:
        write(os.fsencode(activation_script(Shell(shell), made)))
    else:
        from torchyard.reports.environment.text import environment_diff, environment_report

        own = os.environ.get("SHELL", "").rpartition("/")[2]
        used = Shell(own) if own in list(Shell) else Shell.BASH
        if diff:
            show(environment_diff(made, os.environ))
        else:
            show(environment_report(made, used, Path.cwd()))
