"""`torchyard mirror`: take a part of another index into a channel."""

from pathlib import Path

import click

from torchyard.cli.options import file_option, json_option
from torchyard.cli.output import show_document
from torchyard.workspace.clock import current_moment
from torchyard.workspace.locations import home_directory, open_channel


@click.command("mirror")
@click.argument("source")
@click.option("--to", "place", required=True, metavar="CHANNEL", help="Where the files go.")
@click.option(
    "--select",
    "selects",
    multiple=True,
    required=True,
    metavar="REQUIREMENT",
    help="Projects and versions to take, such as 'torch==2.13.*'.",
)
@click.option("--python", "pythons", multiple=True, metavar="TAG", help="Only for these: cp312.")
@click.option(
    "--platform",
    "platforms",
    multiple=True,
    metavar="GLOB",
    help="Only for these: 'manylinux*_x86_64'.",
)
@click.option(
    "--variant", metavar="NAME", help="Variant for all files, whatever their versions say."
)
@click.option(
    "--allow-unhashed",
    "unhashed",
    is_flag=True,
    help="Take files without hashes, which can't be verified.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be taken.")
@file_option
@json_option
def command(
    *,
    source: str,
    place: str,
    selects: tuple[str, ...],
    pythons: tuple[str, ...],
    platforms: tuple[str, ...],
    variant: str | None,
    unhashed: bool,
    dry_run: bool,
    file: str,
    as_json: bool,
) -> None:
    """Take a part of another simple index, SOURCE, into a channel.

    SOURCE is an address or a directory. Files are verified by their hashes on arrival; all are
    published at once. A run that was interrupted continues where it stopped.
    """
    from torchyard.host.fetcher import directory_url
    from torchyard.host.http import redact_url
    from torchyard.publish.channel.draft import ChangeReason
    from torchyard.publish.mirror.mirror import Mirror
    from torchyard.publish.mirror.select import MirrorRequest, check_python, check_variant
    from torchyard.reports.mirror.document import mirror_document
    from torchyard.reports.mirror.text import mirror_report

    wanted = MirrorRequest(
        selects=selects,
        pythons=tuple(map(check_python, pythons)),
        platforms=platforms,
        variant=None if variant is None else check_variant(variant),
    )
    address, now = directory_url(source), current_moment()
    channel = open_channel(place, file, make=True)
    mirror = Mirror(address, channel, Path(home_directory(file), "mirror"), now)
    files = mirror.look(wanted, unhashed=unhashed)
    generation = 0
    if not dry_run:
        why = f"mirror {', '.join(selects)} of {redact_url(address)}"
        head, files = mirror.take(files, ChangeReason(why, now))
        generation = head.generation
    document = mirror_document(redact_url(address), channel.url, generation, files)
    show_document(document, mirror_report, as_json=as_json)
