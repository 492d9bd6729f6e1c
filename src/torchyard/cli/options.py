"""Options that several commands share."""

import sys
from collections.abc import Callable
from functools import partial, wraps
from typing import cast

import click
from click.core import ParameterSource
from click.decorators import FC

from torchyard.cli.completion import complete_names
from torchyard.errors import UsageError
from torchyard.model.quantity import parse_size

file_option = click.option(
    "-f",
    "--file",
    metavar="FILE",
    default="torchyard.toml",
    show_default=True,
    help="Configuration to read.",
)
set_option = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a value of the configuration, such as project.version=2.14.1.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")

subset_option = click.option("--subset", metavar="NAME", help="Use a named part of the matrix.")

names_argument = partial(click.argument, shell_complete=complete_names)
selector_argument = names_argument("words", nargs=-1, metavar="[SELECTOR]...")
"""Cells and jobs: values (`cu130`), parts of paths (`cu130-mkl/cp312`), stages (`core:*`)."""

skip_option = click.option(
    "--skip",
    multiple=True,
    metavar="SELECTOR",
    shell_complete=complete_names,
    help="Cells and jobs to leave out.",
)
build_argument = names_argument("what", required=False, metavar="[JOB|DIRECTORY|PACKAGE]")

_store_option = partial(
    click.option,
    "--store",
    metavar="URL",
    help="Store to use instead of the file's: file://…, s3://… or a directory.",
)
store_option = _store_option()
store_url_option = _store_option("store_url")
work_option = click.option(
    "--work", metavar="DIR", help="Work directory of jobs, instead of .torchyard/work."
)


def request_options(function: FC, file: Callable[[FC], FC] = file_option) -> FC:
    """Add the options of a build to a command, which gets their values as a `BuildRequest`.

    The command's argument `words` is the selector, and its option `file` the configuration.
    """

    @wraps(function)
    def command(
        *,
        words: tuple[str, ...],
        file: str,
        changes: tuple[str, ...],
        subset: str | None,
        skip: tuple[str, ...],
        store_url: str | None,
        **others: object,
    ) -> None:
        from torchyard.workspace.build_request import BuildRequest

        request = BuildRequest(file, changes, subset, words, skip, store_url)
        function(request=request, **others)

    given = cast("FC", command)
    for option in (store_url_option, skip_option, subset_option, set_option, file):
        given = option(given)
    return given


def _size(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    try:
        return None if text is None else parse_size(text)
    except ValueError as error:
        raise UsageError(str(error)) from error


spec_option = click.option(
    "--spec", metavar="FILE", help="Take the job from a file that an engine wrote."
)
copies_option = click.option(
    "--copies",
    metavar="SIZE",
    callback=_size,
    help="Cache up to this much of the store, such as '50 GB', in the work directory.",
)
sandbox_option = click.option(
    "--sandbox",
    type=click.Choice(["none", "view", "bwrap"]),
    help="Use this sandbox, not the file's.",
)

channel_argument = click.argument("channel", metavar="CHANNEL")
"""A channel: its name in the file, its address or its directory."""

requirements_argument = click.argument(
    "selectors", nargs=-1, required=True, metavar="REQUIREMENT..."
)
"""Files of a channel, as requirements: `torch==2.14.0`."""

variant_option = click.option(
    "--variant", "variants", multiple=True, metavar="GLOB", help="Only of these variants: cu130."
)
only_option = click.option(
    "--only", "files", multiple=True, metavar="GLOB", help="Only files of these names: *cp312*."
)
override_option = click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="GATE:FILE=REASON",
    help="Accept a file that the gate cell, check, smoke or sandbox refuses; this is shown.",
)


def _one_policy(_ctx: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> str:
    if len(names) > 1:
        msg = f"there can be only one policy, not {' and '.join(names)}"
        raise UsageError(msg, hint='write a file of your own, with `base = "pypi"` in it')
    return names[0]


policy_option = click.option(
    "--policy",
    "policy",
    metavar="NAME|FILE",
    multiple=True,
    callback=_one_policy,
    default=["default"],
    show_default="default",
    help="How strict to be: default, strict, pypi, or a TOML file of your own.",
)


def refuse_options(ctx: click.Context) -> None:
    """Refuse options before a subcommand, where they have no effect."""
    for name in ctx.params:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            msg = f"options of `{ctx.command_path}` have no effect on its subcommands"
            hint = f"write them after it: {ctx.command_path} {ctx.invoked_subcommand} … --option"
            raise UsageError(msg, hint=hint)


def confirm(question: str, why: str, hint: str) -> None:
    """Ask a question on the terminal; raise UsageError unless the answer is yes."""
    is_asked = sys.stdin is not None and sys.stdin.isatty()
    if not (is_asked and click.confirm(question, err=True)):
        msg = "nothing was done" if is_asked else why
        raise UsageError(msg, hint=hint)
