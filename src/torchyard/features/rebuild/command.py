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
@click.option("--yes", is_flag=True, help="Do not ask before the commands are run.")
@click.option("--trust", is_flag=True, help="Accept less than the sandbox `bwrap`.")
@sandbox_option
@reports("rebuild_package")
def command() -> None:
    """Build a package again, and compare the two byte for byte.

    The commands are those of the job spec that the package contains. They are shown first, and run
    in the sandbox `bwrap`, without variables of yours. Everything is built again, from the source
    on; with --store only what it does not have, and always the package. A source directory or
    archive is looked for beside --file.
    """
