"""`torchyard repair`: change tags, version or libraries of a package, and nothing else."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import policy_option
from torchyard.cli.output import reports


@in_section(HelpSection.VERIFY)
@click.command("repair")
@click.argument(
    "packages",
    nargs=-1,
    required=True,
    metavar="PACKAGE…",
    type=click.Path(exists=True, dir_okay=False),
)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Directory for the new packages; files of the same name are replaced.",
)
@click.option("--version", metavar="VERSION", help="A whole new version: 2.13.1, 2.13.0+cu130.")
@click.option("--local", metavar="WORD", help="What follows the version's +: cu130; or none.")
@click.option("--python-tag", default="", metavar="TAG", help="The wheel's first tag: cp312.")
@click.option("--abi-tag", default="", metavar="TAG", help="Its second tag: cp312, abi3.")
@click.option(
    "--platform-tag", default="", metavar="TAG", help="Its third tag: manylinux_2_28_x86_64."
)
@click.option(
    "--rpath",
    metavar="DIRS",
    help="Where libraries look for others: $ORIGIN:$ORIGIN/lib; or policy, what is usual for such "
    "a package, and what they need besides.",
)
@click.option(
    "--needed",
    multiple=True,
    metavar="OLD=NEW",
    help="Need NEW in place of OLD. `OLD=` needs it no longer, `=NEW` one more.",
)
@click.option("--strip", is_flag=True, help="Take debug information out, and keep it beside.")
@click.option(
    "--members",
    multiple=True,
    metavar="GLOB",
    help="Use --rpath, --needed and --strip on these only: torch/lib/*.so.",
)
@click.option(
    "--bundle",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Bring libraries along that are needed, missing, and in this directory.",
)
@click.option(
    "--compute",
    default="",
    metavar="NAME",
    help="What it is compiled for, if neither its version nor what it needs says so: cu130.",
)
@policy_option
@click.option(
    "--no-check", is_flag=True, help="Do not check what was made, and write it even if it is worse."
)
@reports("repair_packages")
def command() -> None:
    """Change tags, version or libraries of wheels and zips.

    Files that do not change are copied as they are. Packages are never changed in place: the new
    ones are checked like by `torchyard check`, and written to another directory unless one has more
    errors than before. The same package and options give the same bytes.
    """
