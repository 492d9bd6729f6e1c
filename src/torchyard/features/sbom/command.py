"""`torchyard sbom`: what is in packages."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.output import reports


@in_section(HelpSection.VERIFY)
@click.command("sbom")
@click.argument("packages", nargs=-1, required=True, metavar="PACKAGE...")
@click.option(
    "--deny",
    multiple=True,
    metavar="GLOB",
    help="Fail if a component in a package has such a licence, as AGPL-* or GPL-*.",
)
@click.option("--write", metavar="FOLDER", help="Write the documents (CycloneDX) into a folder.")
@reports("list_components")
def command() -> None:
    """Show what is in packages: sources, libraries, licences.

    torchyard's packages contain the list. For others it is inferred from their files: without
    sources, and without what was linked in statically.
    """
