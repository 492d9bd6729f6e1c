"""`torchyard promote`: from one channel into another, by digest and never by rebuild."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from torchyard.app.clock import current_moment
from torchyard.app.locations import filling, home_of, open_channel, place_of
from torchyard.app.planned import cells_of, channel_of, check_origin, config_of, plan_of
from torchyard.cli.options import (
    file_option,
    json_option,
    only_option,
    selectors_argument,
    set_option,
    variant_option,
)
from torchyard.errors import PublishError
from torchyard.terminal.console import show, write

if TYPE_CHECKING:
    from torchyard.publish.gates import Demands
    from torchyard.publish.ops.promote import Local


@click.command("promote")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@selectors_argument
@variant_option
@only_option
@click.option(
    "--local",
    type=click.Choice(["keep", "drop"]),
    default="keep",
    show_default=True,
    help="What becomes of +cu130 in versions of wheels and zips.",
)
@click.option("--partial", is_flag=True, help="Promote though packages of the plan are missing.")
@click.option(
    "--external",
    multiple=True,
    metavar="GLOB",
    help="Names that packages may require though the channel does not have them.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be promoted, or why not.")
@file_option
@set_option
@json_option
def command(
    *,
    source: str,
    target: str,
    selectors: tuple[str, ...],
    variants: tuple[str, ...],
    files: tuple[str, ...],
    local: "Local",
    partial: bool,
    external: tuple[str, ...],
    dry_run: bool,
    file: str,
    changes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Bring files of one channel into another, as they are, all at once or not at all.

    SELECTOR is a requirement: torch==2.14.0. The bytes are those that were tested; only with
    --local drop, wheels and zips are written anew under the version without its local part, and
    nothing else in them changes. What was promoted before stays as it is.
    """
    from torchyard.publish.channel.draft import ChangeReason
    from torchyard.publish.gates import judge_all
    from torchyard.publish.ops.promote import Route, gather, head_for, promote, without_local
    from torchyard.publish.select import parse_selection
    from torchyard.reports.document import encode
    from torchyard.reports.publish.document import publish_document
    from torchyard.reports.publish.text import publish_report

    demands = _demands(source, target, file, changes)
    demands = demands._replace(external=(*demands.external, *external), partial=partial)
    selection = parse_selection(selectors, variants, files)
    origin = open_channel(source, file)
    now = current_moment()
    found = gather(origin, selection, now)
    url = place_of(target, file)
    home = Path(home_of(file))
    home.mkdir(parents=True, exist_ok=True)
    with (
        filling(url, dry_run=dry_run) as place,
        TemporaryDirectory(prefix="promote-", dir=home) as scratch,
    ):
        head = head_for(origin, place, target)
        route = Route(origin, place, Path(scratch))
        if local == "drop":
            found = without_local(route, head, found)
        packages = [one.package for one in found]
        verdict = judge_all(place, head, packages, demands)
        if verdict.refusals:
            raise PublishError.of(verdict.refusals)
        generation, new = head.generation, tuple(verdict.new)
        if not dry_run:
            order = ChangeReason(f"promote {selection} from {source}", now)
            done = promote(route, head, found, order)
            generation, new = done.head.generation, done.new
    document = publish_document(
        url,
        generation,
        packages,
        new,
        notes=verdict.notes,
        partial=partial,
        dry_run=dry_run,
    )
    if as_json:
        write(encode(document))
    else:
        show(publish_report(document))


def _demands(source: str, target: str, file: str, changes: tuple[str, ...]) -> "Demands":
    """What the file asks of packages in the channel that they go to."""
    from torchyard.publish.gates import Demands

    config = config_of(file, changes)
    channel = channel_of(config, target, file)
    if config is None or channel is None:
        return Demands()
    check_origin(channel, source, file)
    return Demands(cells=cells_of(plan_of(config, channel)), external=channel.external)
