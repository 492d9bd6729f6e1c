"""`torchyard build`: the whole plan, on this machine or by another engine."""

from typing import TYPE_CHECKING

import click

from torchyard.cli.engine_options import LOCAL, EngineCommand
from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import json_option, request_options, selector_argument
from torchyard.errors import UsageError
from torchyard.model.quantity import show_count
from torchyard.terminal.console import say, write

if TYPE_CHECKING:  # slow to import
    from torchyard.workspace.build_request import BuildRequest

HERE = "here"
"""The selector of the cell that fits the active environment."""


@in_section(HelpSection.BUILD)
@click.command("build", cls=EngineCommand)
@selector_argument
@request_options
@click.option(
    "--engine",
    metavar="NAME",
    default=LOCAL,
    show_default=True,
    help="Where jobs run: on this machine, or through a plug-in.",
)
@click.option(
    "--keep-going",
    is_flag=True,
    help="After a failure, continue with jobs that do not need the failed one.",
)
@click.option("--output", "-o", metavar="DIR", help="Copy the packages there when all are built.")
@json_option
def command(
    *,
    request: "BuildRequest",
    engine: str,
    keep_going: bool,
    output: str | None,
    as_json: bool,
    **options: str | int | bool | None,
) -> None:
    """Build the plan, or the part of it that SELECTOR names.

    SELECTOR is a value (cu130), a cell (cu130-mkl/cp312) or a job (core:*).

    `build here` builds the one wheel of an extension that fits the torch, Python and CUDA of the
    active environment, and prints the command that installs it.

    Results in the store are not built again. All jobs share a pool of compile slots: one for each
    processor, and fewer while memory is short. Ctrl-C stops cleanly, a second one at once; the same
    command continues later. With --json, events are printed as they happen.
    """
    from msgspec.structs import replace

    from torchyard.cli.build_display import show_build
    from torchyard.engines.registry import make_engine
    from torchyard.workspace.build import prepare_build

    chosen = make_engine(engine, {key: value for key, value in options.items() if value})
    request = replace(request, engine=chosen, keep_going=keep_going, output=output)
    if HERE in request.select:
        if len(request.select) > 1 or request.subset:
            msg = f"`{HERE}` is a single cell, and excludes other selectors and subsets"
            raise UsageError(msg, hint=f"run `torchyard build {HERE}` by itself")
        from torchyard.features.build.use_case import install_command, prepare_here

        here = prepare_here(request, say=say)
        show_build(here.build, as_json=as_json)
        wheel = here.deliver()
        if not as_json:
            write(f"{wheel}\ninstall it: {install_command(here.environment, wheel)}\n")
        return
    build = prepare_build(request)
    show_build(build, as_json=as_json)
    delivered = build.deliver()
    if output and not as_json:
        say(f"copied {show_count(len(delivered), 'file')} to {output}{build.unproven}")
