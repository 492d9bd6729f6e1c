"""Publish packages into a channel, all at once or not at all."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchyard.app.channel_config import (
    channel_named,
    check_origin,
    load_if_present,
    plan_channel,
    planned_cells,
)
from torchyard.app.locations import channel_url, filling
from torchyard.app.progress import Meter, no_meter, read_metered
from torchyard.app.stored_results import ResultSource, stored_results
from torchyard.errors import PublishError, SelectionError, UsageError
from torchyard.model.config import Config

if TYPE_CHECKING:
    from torchyard.checks.policy import CheckPolicy
    from torchyard.publish.channel.channel import Channel as OpenChannel
    from torchyard.publish.gates import Demands
    from torchyard.publish.plan_results import PlanResults
    from torchyard.publish.staged import Grouping, Package
    from torchyard.reports.publish.document import PublishDocument

_NAMED = 3
"""Maximum number of releases that an entry of the channel's log names."""


def publish_packages(
    channel: str,
    packages: Sequence[str | Path] = (),
    *,
    file: str = "torchyard.toml",
    changes: Sequence[str] = (),
    store: str | None = None,
    partial: bool = False,
    external: Sequence[str] = (),
    variants: "Grouping | None" = None,
    policy: str | None = None,
    dry_run: bool = False,
    meter: Meter = no_meter,
) -> "PublishDocument":
    """Publish packages into a channel, all at once or not at all, and return what is new there.

    Args:
        channel: Name of a channel of the file, or the address or directory of any.
        packages: Files and directories; all that was built for the channel if there are none.
        file: The configuration; it need not exist if `channel` is an address.
        changes: Changes of it, each as `KEY=VALUE`.
        store: Store with what was built, in place of the file's.
        partial: Publish though packages of the plan are missing.
        external: Globs of names that packages may require though the channel does not have them.
        variants: What has an index of its own, in a channel that is new.
        policy: How strictly to check, in place of the file's policy.
        dry_run: Only return what would be published.
        meter: Shows progress.

    Raises:
        PublishError: The channel refuses the packages; each diagnostic is a reason.
    """
    from torchyard.publish.gates import Demands

    config = load_if_present(file, changes)
    known = channel_named(config, channel, file)
    check_origin(known, None, file)
    request = PublishRequest(
        url=channel_url(channel, file),
        paths=tuple(Path(path) for path in packages),
        policy=_policy(policy, config),
        demands=Demands(
            external=(*(known.external if known else ()), *external),
            partial=partial,
        ),
        name=known.name if known else "",
        grouping=variants or (known.variants if known else None),
        dry_run=dry_run,
    )
    if config is None or known is None:
        if packages:
            return publish_request(request, meter)
        msg = f"what is to be published to `{channel}`? It is no channel of `{file}`"
        raise UsageError(msg, hint="name packages, or directories that have some")
    demands = request.demands._replace(cells=planned_cells(plan_channel(config, known)))
    source = ResultSource(config, known, file, store)
    with stored_results(source, packages=not packages) as results:
        return publish_request(request._replace(demands=demands, results=results), meter)


class PublishRequest(NamedTuple):
    """What is to be published where, and what is demanded of it."""

    url: str
    paths: tuple[Path, ...]
    """Files and directories; empty for all packages of `results`."""
    policy: "CheckPolicy"
    demands: "Demands"
    results: "PlanResults | None" = None
    """Results of the plan that packages are from, as far as they are known."""
    name: str = ""
    grouping: "Grouping | None" = None
    """None: the channel's own."""
    dry_run: bool = False


def publish_request(request: PublishRequest, meter: Meter = no_meter) -> "PublishDocument":
    """Run all checks and publish, or raise with every reason against it."""
    with filling(request.url, dry_run=request.dry_run) as channel:
        return _publish(channel, request, meter)


def _publish(channel: "OpenChannel", request: PublishRequest, meter: Meter) -> "PublishDocument":
    import msgspec

    from torchyard.app.clock import current_date, current_moment
    from torchyard.publish.channel.draft import ChangeReason
    from torchyard.publish.evidence import NO_EVIDENCE, judge_by, read_evidence
    from torchyard.publish.gates import judge_all
    from torchyard.publish.publish import publish
    from torchyard.publish.staged import made_elsewhere, read_staged
    from torchyard.reports.publish.document import publish_document

    head = channel.head()
    if not head.generation:
        grouping = request.grouping or head.grouping
        head = msgspec.structs.replace(head, name=request.name, grouping=grouping)
    elif request.grouping not in (None, head.grouping):
        msg = f"the variants of `{request.url}` are called after `{head.grouping}`"
        raise PublishError(msg, hint=f'a channel keeps its own: write variants = "{head.grouping}"')
    today, now = current_date(), current_moment()
    results = request.results
    evidence = read_evidence(results, request.policy, today) if results else NO_EVIDENCE
    paths = request.paths or (results.packages() if results else ())
    packages = read_staged(
        paths,
        head.grouping,
        now,
        judge_by(request.policy, today, evidence.checked),
        read=partial(read_metered, meter=meter),
        cell_for=results.cell_for if results else made_elsewhere,
    )
    if not packages:
        where = ", ".join(map(str, request.paths)) or "the store"
        msg = f"there is no package in {where}"
        raise SelectionError(msg, hint="name packages, or directories that have some")
    verdict = judge_all(channel, head, packages, request.demands._replace(evidence=evidence))
    if verdict.refusals:
        raise PublishError.of(verdict.refusals)
    if request.dry_run:
        generation, new = head.generation, tuple(verdict.new)
    else:
        why = _reason(packages, is_partial=request.demands.partial)
        with meter("sending", sum(package.entry.size for package in verdict.new)) as progress:
            done = publish(channel, head, packages, ChangeReason(why, now), progress)
        generation, new = done.head.generation, done.new
    return publish_document(
        request.url,
        generation,
        packages,
        new,
        notes=verdict.notes,
        partial=request.demands.partial,
        dry_run=request.dry_run,
    )


def _reason(packages: Sequence["Package"], *, is_partial: bool) -> str:
    """Return the line of the channel's log."""
    releases = sorted({f"{package.name} {package.entry.version}" for package in packages})
    more = f" and {len(releases) - _NAMED} more" if len(releases) > _NAMED else ""
    return f"publish {', '.join(releases[:_NAMED])}{more}{' (partial)' if is_partial else ''}"


def _policy(name: str | None, config: Config | None) -> "CheckPolicy":
    """Return the policy that is named, or the file's, or the default one."""
    from torchyard.checks.policies import load_policy, parse_policy

    if name is None and config is not None and config.check.text:
        return parse_policy(config.check.policy, config.check.text)
    return load_policy(name or (config.check.policy if config else "default"))
