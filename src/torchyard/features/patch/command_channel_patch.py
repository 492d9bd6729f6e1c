"""`torchyard channel patch`: correct what solvers see of conda packages."""

import click

from torchyard.cli.options import channel_argument, file_option, only_option, variant_option
from torchyard.cli.output import reports


@click.command("patch")
@channel_argument
@click.argument("selectors", nargs=-1, metavar="[REQUIREMENT]...")
@variant_option
@only_option
@click.option(
    "--depends",
    multiple=True,
    metavar="SPEC",
    help="Require this, instead of what is required of that name.",
)
@click.option("--constrains", multiple=True, metavar="SPEC", help="The same for constraints.")
@click.option("--drop", multiple=True, metavar="NAME", help="Require and constrain no NAME.")
@click.option("--license", "license_", metavar="TEXT", help="The licence.")
@click.option(
    "--from", "instructions", metavar="DIR", help="Take DIR/SUBDIR/patch_instructions.json instead."
)
@click.option("--undo", is_flag=True, help="Remove all corrections of the files.")
@click.option("--reason", metavar="TEXT", help="The reason, for `torchyard channel log`.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option(
    "--solve", multiple=True, metavar="SPEC", help="Show what a solver chooses before and after."
)
@click.option(
    "--conda-channel",
    "channels",
    multiple=True,
    metavar="CHANNEL",
    help="Solve with this one, too.",
)
@click.option(
    "--virtual", multiple=True, metavar="NAME=VERSION", help="Solve with this: __cuda=13.0."
)
@file_option
@reports("patch_records")
def command() -> None:
    """Correct requirements of conda packages.

    The packages do not change. The index gets the corrected records, in all its forms, and
    repodata_from_packages.json has the packages' own. Patch instructions replace earlier
    corrections of the files that they name.
    """
