"""`torchyard publish`: packages into a channel, all at once or not at all."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import click

from torchyard.app.locations import filling, home_of, open_store, place_of
from torchyard.app.planned import cells_of, channel_of, check_origin, config_of, plan_of
from torchyard.cli.options import file_option, json_option, set_option, store_option
from torchyard.errors import PublishError, SelectionError, UsageError
from torchyard.model.config import Channel, Config
from torchyard.terminal.console import show, write

if TYPE_CHECKING:
    from torchyard.checks.policy import CheckPolicy
    from torchyard.publish.channel.channel import Channel as Place
    from torchyard.publish.gates import Demands
    from torchyard.publish.staged import Grouping, Package
    from torchyard.reports.publish.document import PublishDocument

_NAMED = 3
"""So many releases are named in the channel's log."""


class Wish(NamedTuple):
    """What is to be published where, and what is asked of it."""

    url: str
    paths: tuple[Path, ...]
    policy: "CheckPolicy"
    demands: "Demands"
    name: str = ""
    grouping: "Grouping | None" = None
    """Nothing: the channel's own."""
    dry_run: bool = False


@click.command("publish")
@click.argument("results", nargs=-1, type=click.Path(path_type=Path))
@click.option("--to", "place", required=True, metavar="CHANNEL", help="Name, address or directory.")
@click.option("--partial", is_flag=True, help="Publish though packages of the plan are missing.")
@click.option(
    "--external",
    multiple=True,
    metavar="GLOB",
    help="Names that packages may require though the channel does not have them.",
)
@click.option(
    "--variants",
    type=click.Choice(["compute", "compute-blas"]),
    help="What has an index of its own, in a channel that is new.",
)
@click.option("--policy", "policy_name", metavar="NAME|FILE", help="How strictly to check.")
@click.option("--dry-run", is_flag=True, help="Only say what would be published, or why not.")
@file_option
@set_option
@store_option
@json_option
def command(
    *,
    results: tuple[Path, ...],
    place: str,
    partial: bool,
    external: tuple[str, ...],
    variants: "Grouping | None",
    policy_name: str | None,
    dry_run: bool,
    file: str,
    changes: tuple[str, ...],
    store_url: str | None,
    as_json: bool,
) -> None:
    """Publish packages: RESULTS are files and directories; without any, all that was built.

    Everything is looked at first: whether the plan's packages are all there, whether each is
    proven, whether wheels of a version agree, and whether all that they require is in the channel
    or declared external. Then one switch shows all of them to everybody.
    """
    from torchyard.publish.gates import Demands

    config = config_of(file, changes)
    channel = channel_of(config, place, file)
    check_origin(channel, None, file)
    wish = Wish(
        url=place_of(place, file),
        paths=results,
        policy=_policy(policy_name, config),
        demands=Demands(
            cells=cells_of(plan_of(config, channel)) if config and channel else frozenset(),
            external=(*(channel.external if channel else ()), *external),
            partial=partial,
        ),
        name=channel.name if channel else "",
        grouping=variants or (channel.variants if channel else None),
        dry_run=dry_run,
    )
    if results:
        document = published(wish)
    elif config and channel:
        with _from_store(config, channel, file, store_url) as folder:
            document = published(wish._replace(paths=(folder,)))
    else:
        msg = f"what is to be published to `{place}`? It is no channel of `{file}`"
        raise UsageError(msg, hint="name packages, or directories that have some")
    from torchyard.reports.document import encode
    from torchyard.reports.publish.text import publish_report

    if as_json:
        write(encode(document))
    else:
        show(publish_report(document))


def published(wish: Wish) -> "PublishDocument":
    """Ask all gates and publish, or raise all that stands against it."""
    with filling(wish.url, dry_run=wish.dry_run) as channel:
        return _published(channel, wish)


def _published(channel: "Place", wish: Wish) -> "PublishDocument":
    import msgspec

    from torchyard.app.clock import current_date, current_moment
    from torchyard.app.reading import read
    from torchyard.publish.channel.draft import ChangeReason
    from torchyard.publish.evidence import judge_by, proven
    from torchyard.publish.gates import judge_all
    from torchyard.publish.publish import publish
    from torchyard.publish.staged import read_staged
    from torchyard.reports.publish.document import publish_document
    from torchyard.terminal.progress import Progress

    head = channel.head()
    if not head.generation:
        grouping = wish.grouping or head.grouping
        head = msgspec.structs.replace(head, name=wish.name, grouping=grouping)
    elif wish.grouping not in (None, head.grouping):
        msg = f"the variants of `{wish.url}` are called after `{head.grouping}`"
        raise PublishError(msg, hint=f'a channel keeps its own: write variants = "{head.grouping}"')
    today, now = current_date(), current_moment()
    trusted = proven(wish.paths, wish.policy, today)
    judge = judge_by(wish.policy, today, trusted)
    packages = read_staged(wish.paths, head.grouping, now, judge, read)
    if not packages:
        msg = f"there is no package in {', '.join(map(str, wish.paths))}"
        raise SelectionError(msg, hint="name packages, or directories that have some")
    verdict = judge_all(channel, head, packages, wish.demands)
    if verdict.refusals:
        raise PublishError.of(verdict.refusals)
    if wish.dry_run:
        generation, new = head.generation, tuple(verdict.new)
    else:
        why = _why(packages, partial=wish.demands.partial)
        with Progress("sending", sum(package.entry.size for package in verdict.new)) as progress:
            done = publish(channel, head, packages, ChangeReason(why, now), progress)
        generation, new = done.head.generation, done.new
    return publish_document(
        wish.url,
        generation,
        packages,
        new,
        notes=verdict.notes,
        partial=wish.demands.partial,
        dry_run=wish.dry_run,
    )


def _why(packages: Sequence["Package"], *, partial: bool) -> str:
    """What the channel's log says of it."""
    releases = sorted({f"{package.name} {package.entry.version}" for package in packages})
    more = f" and {len(releases) - _NAMED} more" if len(releases) > _NAMED else ""
    return f"publish {', '.join(releases[:_NAMED])}{more}{' (partial)' if partial else ''}"


def _policy(name: str | None, config: Config | None) -> "CheckPolicy":
    """The policy of the command line, of the file, or the usual one."""
    from torchyard.checks.policy import load_policy, parse_policy

    if name is None and config is not None and config.check.text:
        return parse_policy(config.check.policy, config.check.text)
    return load_policy(name or (config.check.policy if config else "default"))


@contextmanager
def _from_store(
    config: Config, channel: Channel, file: str, store_url: str | None
) -> Iterator[Path]:
    """Lay out the packages that a plan has made, and the reports of their checks."""
    from torchyard.app.toolchain_id import with_toolchain_id
    from torchyard.model.recipe import Stage
    from torchyard.store.trees import fetch_tree

    plan = plan_of(with_toolchain_id(config, file), channel)
    store = open_store(store_url, file, config, make=False)
    home = Path(home_of(file))
    home.mkdir(parents=True, exist_ok=True)
    wanted = (Stage.PACKAGE, Stage.CHECK)
    names = [job.fingerprint for job in plan.jobs if job.stage in wanted]
    with TemporaryDirectory(prefix="publish-", dir=home) as folder:
        for result in store.results(names):
            task = result.order.task
            fetch_tree(store, result.tree, Path(folder, task.stage, task.scope))
        yield Path(folder)
