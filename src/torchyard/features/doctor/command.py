"""`torchyard doctor`: inspect this machine before a build."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import request_options, selector_argument, work_option
from torchyard.cli.output import reports


@in_section(HelpSection.START)
@click.command("doctor")
@selector_argument
@click.option("--source", metavar="DIR", help="For a build of this tree by hand, in this shell.")
@click.option(
    "--compute", metavar="NAME", help="With --source: GPU platform, such as cu130, or cpu."
)
@click.option("--blas", metavar="NAME", help="With --source: BLAS, such as mkl.")
@click.option("--fix", is_flag=True, help="Run the commands that change only tree or environment.")
@request_options
@work_option
@reports("inspect_machine")
def command() -> None:
    """Inspect this machine for a build, and report what would fail.

    Each finding has a fix. SELECTOR names cells of the file; the default is all cells of this
    platform. It checks what `build` needs to start, for jobs without results in the store. Jobs
    have their own environment. With --source, or in a directory with a source tree and no file,
    the environment of this shell is inspected.

    A missing requirement of a build is an error, with exit code 7.
    """
