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
    help="Need NEW instead of OLD; `OLD=` removes a need, `=NEW` adds one.",
)
@click.option("--strip", is_flag=True, help="Move debug information into a separate file.")
@click.option(
    "--members",
    multiple=True,
    metavar="GLOB",
    help="Apply --rpath, --needed and --strip only to these: torch/lib/*.so.",
)
@click.option(
    "--bundle",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Add needed, missing libraries from this directory.",
)
@click.option(
    "--compute",
    default="",
    metavar="NAME",
    help="Compute platform, if neither version nor needs show it: cu130.",
)
@policy_option
@click.option(
    "--no-check", is_flag=True, help="Do not check the result, and write it even if it is worse."
)
@reports("repair_packages")
def command() -> None:
    """Change tags, version or libraries of wheels and zips.

    Other files are copied unchanged. Packages are never changed in place: new ones are checked like
    by `torchyard check`, and written to another directory unless one has more errors than before.
    The same package and options give the same bytes.
    """
