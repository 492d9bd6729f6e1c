"""`torchyard which`: the package of a channel that fits a machine."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import channel_argument, file_option
from torchyard.cli.output import reports


class _WhichCommand(click.Command):
    """A command with an option for each fact about GPUs, which compute platforms name."""

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
    help="For this torch, such as 2.13 or 2.13.0+cu130; any: for one that is installed with it.",
)
@click.option("--platform", metavar="NAME", help="For this platform, such as linux-x86_64.")
@click.option("--glibc", metavar="VERSION", help="For a system with this glibc.")
@click.option("--cpu", "no_gpu", is_flag=True, help="For a machine without any GPU.")
@click.option(
    "--package",
    "kind",
    metavar="NAME",
    default="",
    help="Format of the package, such as conda; a wheel unless given.",
)
@click.option("--url", metavar="URL", help="Where readers find the channel, for the command.")
@reports("find_fitting")
def command() -> None:
    """Find the package of a channel that fits this machine.

    The command that installs it is printed, and why no other package fits.
    Without options it is the package for this machine, and for the Python and the torch of the
    activated environment; without one, for the Python that runs torchyard.
    """
