"""`torchyard which`: the package of a channel that fits a machine."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import channel_argument, file_option
from torchyard.cli.output import reports


class _WhichCommand(click.Command):
    """A command with an option for each fact about GPUs, as named by compute platforms."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        from torchyard.compute.registry import machine_facts

        facts = [
            click.Option(
                [f"--{fact.option}"],
                metavar=None if fact.is_flag else "VERSION",
                is_flag=fact.is_flag,
                help=fact.help,
            )
            for fact in machine_facts()
        ]
        params = super().get_params(ctx)
        before = next(n for n, param in enumerate(params) if "--cpu" in param.opts)
        return [*params[:before], *facts, *params[before:]]


@in_section(HelpSection.PUBLISH)
@click.command("which", cls=_WhichCommand)
@channel_argument
@click.argument("project", metavar="PROJECT[SPEC]")
@file_option
@click.option("--python", metavar="TAG", help="For this Python, such as cp312 or cp313t.")
@click.option(
    "--torch",
    metavar="VERSION",
    help="For this torch, such as 2.13 or 2.13.0+cu130; any: install one with it.",
)
@click.option("--platform", metavar="NAME", help="For this platform, such as linux-x86_64.")
@click.option("--glibc", metavar="VERSION", help="For a system with this glibc.")
@click.option("--cpu", "no_gpu", is_flag=True, help="For a machine without a GPU.")
@click.option(
    "--package",
    "kind",
    metavar="NAME",
    default="",
    help="Format of the package, such as conda; by default a wheel.",
)
@click.option("--url", metavar="URL", help="Users' address of the channel, for the command.")
@reports("find_fitting")
def command() -> None:
    """Find the package of a channel that fits this machine.

    It prints the install command, and why no other package fits. By default, the package is for
    this machine, and for the Python and torch of the activated environment, or else for the Python
    that runs torchyard.
    """
