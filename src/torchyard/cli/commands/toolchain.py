"""`torchyard toolchain`: what this machine compiles with."""

import shlex
from pathlib import Path

import click

from torchyard.cli.options import json_option, refuse_options
from torchyard.cli.output import show_document
from torchyard.compute.registry import PLAIN, compute_platforms, look_up, platform_for
from torchyard.config.load import load_config
from torchyard.config.tables import load_tables
from torchyard.errors import HostError
from torchyard.host.files import exists
from torchyard.host.machine import platform_name
from torchyard.model.toolchain import Toolchain
from torchyard.plan.expand import expand
from torchyard.run.sandbox import INSIDE
from torchyard.terminal.console import write
from torchyard.toolchain.digests import DIGESTS, Digests
from torchyard.toolchain.variables import SYSTEM_PATH
from torchyard.workspace.arguments import check_name
from torchyard.workspace.locations import compile_cache_url, home_directory

FILE = "torchyard.toml"

file_option = click.option(
    "-f",
    "--file",
    metavar="FILE",
    help=f"Configuration to read; {FILE} if there is one.",
)


@click.group("toolchain", invoke_without_command=True)
@file_option
@json_option
@click.pass_context
def command(ctx: click.Context, *, file: str | None, as_json: bool) -> None:
    """Show the Pythons, compilers, CUDA, ROCm, BLAS and cuDNN of this machine.

    With a file, show also what would be used for each compute platform and BLAS of its matrix, or
    why that is missing. Nothing is installed.
    """
    if ctx.invoked_subcommand:
        refuse_options(ctx)
        return
    from torchyard.reports.toolchain.document import toolchain_document
    from torchyard.reports.toolchain.text import toolchain_report
    from torchyard.toolchain.machine import look_around

    file = _existing(file)
    digests = _digests(file)
    parts = _parts(file, digests) if file else {}
    document = toolchain_document(look_around(load_tables(), compute_platforms(), digests), parts)
    show_document(document, toolchain_report, as_json=as_json)


@command.command("env")
@file_option
@click.option("--compute", metavar="NAME", default=PLAIN, show_default=True, help="Such as cu130.")
@click.option("--blas", metavar="NAME", default="", help="Such as mkl.")
@click.option(
    "--folder", metavar="DIR", default=INSIDE, show_default=True, help="Where the job would be."
)
def print_variables(*, file: str | None, compute: str, blas: str, folder: str) -> None:
    """Print the variables that the steps of a job would see, for a shell to read.

    Nothing is installed: what comes from PyPI would be in the job's folder. `torchyard env`
    installs it, for a shell.
    """
    from torchyard.toolchain.provision import ToolchainLayout, build_variables, find_tools
    from torchyard.toolchain.variables import compose

    look_up([compute])
    tables = load_tables()
    check_name(compute, tables.compute, "compute platform")
    check_name(blas, ("", *tables.blas), "BLAS")
    file = _existing(file)
    config = load_config(file) if file else None
    toolchain = (config and config.toolchain) or Toolchain()
    tools = find_tools(
        toolchain,
        compute=compute,
        source=platform_for(compute),
        blas=blas,
        tables=tables,
        digests=_digests(file),
    )
    env = build_variables(
        tools,
        tables.compute[compute].archs.get(platform_name(), ()),
        ToolchainLayout(Path(folder), folder),
        compute_platforms(),
        python=config is not None,
    )
    if file and (place := compile_cache_url(file, config)):
        from torchyard.toolchain import cache

        env |= cache.cache_variables(place, Path(folder), folder)
    env = compose({"PATH": SYSTEM_PATH}, env)
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in sorted(env.items()))
    write("".join(lines).encode())  # for a shell, to the letter


def _parts(file: str, digests: Digests) -> dict[str, str | HostError]:
    """Return what this machine's blocks of a file would use."""
    from torchyard.toolchain.identity import survey

    config = load_config(file)
    cells = expand(config).cells
    here = [cell for cell in cells if cell.platform == platform_name()]
    return survey(
        config.toolchain or Toolchain(),
        computes={cell.compute: platform_for(cell.compute) for cell in here},
        variants=dict.fromkeys(cell.variant for cell in here),
        tables=config.tables,
        digests=digests,
    )


def _existing(file: str | None) -> str | None:
    """Return the given file, or the default one if it exists."""
    return file or (FILE if exists(FILE) else None)


def _digests(file: str | None) -> Digests:
    return Digests(Path(home_directory(file), DIGESTS) if file else None)
