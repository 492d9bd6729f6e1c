"""`torchyard rebuild`: make a package again, and compare."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import file_option, sandbox_option
from torchyard.cli.output import reports


@in_section(HelpSection.VERIFY)
@click.command("rebuild")
@click.argument("package")
@file_option
@click.option("--store", metavar="URL", help="Take inputs from this store.")
@click.option("--work", metavar="DIR", help="Work there, and keep the new package.")
@click.option("--yes", is_flag=True, help="Run the commands without a question.")
@click.option("--trust", is_flag=True, help="Accept less than the sandbox `bwrap`.")
@sandbox_option
@reports("rebuild_package")
def command() -> None:
    """Rebuild a package, and compare the two byte for byte.

    The commands are from the job spec in the package. They are shown first, and run in the sandbox
    `bwrap`, without your variables. Everything is rebuilt from the source; with --store, only the
    package and missing inputs. A source directory or archive is looked up beside --file.
    """
