"""Promote packages from one channel into another, by digest and never by rebuild."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from torchyard.errors import PublishError
from torchyard.workspace.channel_config import (
    channel_named,
    check_origin,
    load_if_present,
    plan_channel,
    planned_cells,
)
from torchyard.workspace.clock import current_moment
from torchyard.workspace.locations import channel_url, filling, home_directory, open_channel

if TYPE_CHECKING:
    from torchyard.publish.gates import Demands
    from torchyard.publish.ops.promote import Local
    from torchyard.reports.publish.document import PublishDocument


def promote_packages(
    source: str,
    target: str,
    selectors: Sequence[str],
    *,
    variants: Sequence[str] = (),
    files: Sequence[str] = (),
    local: "Local" = "keep",
    partial: bool = False,
    external: Sequence[str] = (),
    overrides: Sequence[str] = (),
    dry_run: bool = False,
    file: str = "torchyard.toml",
    changes: Sequence[str] = (),
) -> "PublishDocument":
    """Bring files of one channel into another as they are, and return what is new there.

    Args:
        source: The channel to take files from: a name in the file, an address or a directory.
        target: The channel that gets them.
        selectors: Requirements that name the files: `torch==2.14.0`.
        variants: Globs; only files of these variants.
        files: Globs; only files of these names.
        local: Whether wheels and zips keep the local part of their version (`+cu130`) or drop it.
        partial: Promote though packages of the plan are missing.
        external: Globs of names that packages may require though the channel does not have them.
        overrides: Gates that do not count for one file, each as `GATE:FILE=REASON`.
        dry_run: Only return what would be promoted.
        file: The configuration.
        changes: Changes of it, each as `KEY=VALUE`.

    Raises:
        PublishError: The channel refuses the packages; each diagnostic is a reason.
    """
    from torchyard.publish.channel.draft import ChangeReason
    from torchyard.publish.gates import judge_all
    from torchyard.publish.ops.promote import (
        Route,
        gather_packages,
        head_for,
        promote,
        refuse_unsound_wheels,
        without_local,
    )
    from torchyard.publish.package_gates import overriding, parse_override
    from torchyard.publish.publish import declaring
    from torchyard.publish.select import parse_selection
    from torchyard.reports.publish.document import publish_document

    demands = _demands(source, target, file, changes)
    demands = demands._replace(
        external=(*demands.external, *external),
        partial=partial,
        smoke="off",  # what was demanded of them, the channel that they come from has asked
        overrides=tuple(map(parse_override, overrides)),
    )
    selection = parse_selection(selectors, variants, files)
    origin = open_channel(source, file)
    now = current_moment()
    found = gather_packages(origin, selection, now)
    url = channel_url(target, file)
    home = Path(home_directory(file))
    home.mkdir(parents=True, exist_ok=True)
    with (
        filling(url, dry_run=dry_run) as place,
        TemporaryDirectory(prefix="promote-", dir=home) as scratch,
    ):
        head = head_for(origin, place, target)
        route = Route(origin, place, Path(scratch))
        refuse_unsound_wheels(route, head, found)
        if local == "drop":
            found = without_local(route, head, found)
        packages = [one.package for one in found]
        verdict = judge_all(place, head, packages, demands)
        if verdict.refusals:
            raise PublishError.of(verdict.refusals)
        packages = overriding(packages, verdict.overridden)
        found = [one._replace(package=p) for one, p in zip(found, packages, strict=True)]
        head = declaring(head, demands.external, (*demands.upstream, *origin.head().upstream))
        generation, new = head.generation, tuple(verdict.new)
        if not dry_run:
            reason = ChangeReason(f"promote {selection} from {source}", now)
            done = promote(route, head, found, reason)
            generation, new = done.head.generation, done.new
    return publish_document(
        url,
        generation,
        packages,
        new,
        notes=verdict.notes,
        partial=partial,
        dry_run=dry_run,
    )


def _demands(source: str, target: str, file: str, changes: Sequence[str]) -> "Demands":
    """Return what the file demands of packages in the channel that they go to."""
    from torchyard.publish.gates import Demands

    config = load_if_present(file, changes)
    channel = channel_named(config, target, file)
    if config is None or channel is None:
        return Demands()
    check_origin(channel, source, file)
    return Demands(
        cells=planned_cells(plan_channel(config, channel)),
        external=channel.external,
        upstream=channel.upstream,
    )
