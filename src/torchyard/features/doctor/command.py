"""`torchyard doctor`: inspect this machine before a build."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import request_options, selector_argument, work_option
from torchyard.cli.output import reports


@in_section(HelpSection.START)
@click.command("doctor")
@selector_argument
@click.option("--source", metavar="DIR", help="For a build of this tree by hand, in this shell.")
@click.option("--compute", metavar="NAME", help="With --source: for this, such as cu130 or cpu.")
@click.option("--blas", metavar="NAME", help="With --source: with this BLAS, such as mkl.")
@click.option("--fix", is_flag=True, help="Run the commands that change only tree or environment.")
@request_options
@work_option
@reports("inspect_machine")
def command() -> None:
    """Inspect this machine for a build, and say what would fail.

    Each finding says how to repair it. SELECTOR names cells of the file; without it, all cells of
    this platform. It looks for what `build` would refuse to start without, for jobs that have no
    result in the store. A job has an environment of its own. With --source, or in a directory with
    a source tree and no file, it is the environment of this shell that is inspected.

    What is missing for a build is an error, and the exit code is 7.
    """
