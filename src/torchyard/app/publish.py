"""Publish packages into a channel, all at once or not at all."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchyard.app.stored_results import ResultSource, stored_results
from torchyard.errors import PublishError, SelectionError, UsageError
from torchyard.model.config import Config
from torchyard.workspace.channel_config import (
    channel_named,
    check_origin,
    load_if_present,
    plan_channel,
    planned_cells,
)
from torchyard.workspace.locations import channel_url, filling
from torchyard.workspace.progress import Meter, ignore_line, no_meter, read_metered

if TYPE_CHECKING:
    from torchyard.checks.policy import CheckPolicy
    from torchyard.publish.channel.channel import Channel as OpenChannel
    from torchyard.publish.evidence import Evidence
    from torchyard.publish.gates import Demands
    from torchyard.publish.package_gates import GateOverride
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
    upstream: Sequence[str] = (),
    overrides: Sequence[str] = (),
    variants: "Grouping | None" = None,
    policy: str | None = None,
    dry_run: bool = False,
    meter: Meter = no_meter,
    on_line: Callable[[str], None] = ignore_line,
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
        upstream: Addresses of simple indexes that have these; the channel remembers both.
        overrides: Gates that do not count for one file, each as `GATE:FILE=REASON`.
        variants: What has an index of its own, in a channel that is new.
        policy: How strictly to check, in place of the file's policy.
        dry_run: Only return what would be published.
        meter: Shows progress.
        on_line: Is called with each line of smoke tests, if the channel demands these.

    Raises:
        PublishError: The channel refuses the packages; each diagnostic is a reason.
    """
    from torchyard.publish.gates import Demands
    from torchyard.publish.package_gates import parse_override

    config = load_if_present(file, changes)
    known = channel_named(config, channel, file)
    check_origin(known, None, file)
    level = config.smoke.level if config else "ops"
    request = PublishRequest(
        url=channel_url(channel, file),
        paths=tuple(Path(path) for path in packages),
        policy=_policy(policy, config),
        demands=Demands(
            external=(*(known.external if known else ()), *external),
            upstream=(*(known.upstream if known else ()), *map(_index_url, upstream)),
            partial=partial,
            smoke=known.smoke if known else "planned",
            sandbox=known.sandbox if known else "any",
            overrides=tuple(map(parse_override, overrides)),
        ),
        try_out=functools.partial(_try_out, level=level, on_line=on_line),
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


TryOut = Callable[[Sequence["Package"], Sequence["Package"]], set[str]]
"""Returns the sha256 of packages that work, given some and those that may be beside them."""


class PublishRequest(NamedTuple):
    """What is to be published where, and what is demanded of it."""

    url: str
    paths: tuple[Path, ...]
    """Files and directories; empty for all packages of `results`."""
    policy: "CheckPolicy"
    demands: "Demands"
    results: "PlanResults | None" = None
    """Results of the plan that packages are from, as far as they are known."""
    try_out: "TryOut | None" = None
    """Runs smoke tests on this machine; None where code of packages must not run."""
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

    from torchyard.publish.channel.draft import ChangeReason
    from torchyard.publish.evidence import NO_EVIDENCE, judge_by, read_evidence
    from torchyard.publish.gates import judge_all
    from torchyard.publish.package_gates import overriding
    from torchyard.publish.publish import declaring, publish
    from torchyard.publish.staged import made_elsewhere, read_staged
    from torchyard.reports.publish.document import publish_document
    from torchyard.workspace.clock import current_date, current_moment
    from torchyard.workspace.torch_releases import kept_torches

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
        judge_by(request.policy, today, evidence.checked, kept_torches),
        read=functools.partial(read_metered, meter=meter),
        cell_for=results.cell_for if results else made_elsewhere,
    )
    if not packages:
        where = ", ".join(map(str, request.paths)) or "the store"
        msg = f"there is no package in {where}"
        raise SelectionError(msg, hint="name packages, or directories that have some")
    evidence = _with_smoke_tests(request, packages, evidence)
    verdict = judge_all(channel, head, packages, request.demands._replace(evidence=evidence))
    if verdict.refusals:
        raise PublishError.of(verdict.refusals)
    packages = overriding(packages, verdict.overridden)
    head = declaring(head, request.demands.external, request.demands.upstream)
    if request.dry_run:
        generation, new = head.generation, tuple(verdict.new)
    else:
        why = _reason(packages, verdict.overridden, is_partial=request.demands.partial)
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


def _with_smoke_tests(
    request: PublishRequest, packages: Sequence["Package"], evidence: "Evidence"
) -> "Evidence":
    """Return the evidence with that of smoke tests which the channel demands, run here and now."""
    from torchyard.publish.package_gates import is_untried

    demands = request.demands
    if demands.smoke != "required" or request.try_out is None:
        return evidence
    waived = {one.file for one in demands.overrides if one.gate == "smoke"}
    untried = [p for p in packages if is_untried(p, evidence, "required")]
    untried = [package for package in untried if package.entry.file not in waived]
    works = request.try_out(untried, packages) if untried else set()
    working = {(p.entry.cell, p.entry.sha256) for p in untried if p.entry.sha256 in works}
    return evidence._replace(working=evidence.working | working)


def _try_out(
    packages: Sequence["Package"],
    around: Sequence["Package"],
    *,
    level: str,
    on_line: Callable[[str], None],
) -> set[str]:
    """Install packages in fresh environments, and return the sha256 of those that work."""
    from torchyard.app.smoke import smoke_here, smoke_request
    from torchyard.checks.smoke.package_under_test import read_package_under_test
    from torchyard.config.credentials import take_credentials

    take_credentials()  # no test sees them
    own = {id(package) for package in packages}
    tested = [read_package_under_test(package.path) for package in packages]
    beside = [read_package_under_test(p.path) for p in around if id(p) not in own]
    document = smoke_here(tested, smoke_request(level=level), beside, on_line=on_line)
    return {one.sha256 for one in document.packages if one.works and one.sha256}


def _index_url(url: str) -> str:
    from torchyard.index.address import parse_index_url

    try:
        parsed = parse_index_url(url)
    except ValueError as error:
        raise UsageError(str(error), hint="--upstream https://… names a simple index") from error
    if "@" in parsed:
        msg = "an upstream has a user name or a password, which every reader would see"
        raise UsageError(msg, hint="leave them out: installers have their own")
    return f"{parsed}/"


def _reason(
    packages: Sequence["Package"], overridden: Sequence["GateOverride"], *, is_partial: bool
) -> str:
    """Return the line of the channel's log."""
    releases = sorted({f"{package.name} {package.entry.version}" for package in packages})
    more = f" and {len(releases) - _NAMED} more" if len(releases) > _NAMED else ""
    without = "".join(f"; without {one}" for one in overridden)
    partial = " (partial)" if is_partial else ""
    return f"publish {', '.join(releases[:_NAMED])}{more}{partial}{without}"


def _policy(name: str | None, config: Config | None) -> "CheckPolicy":
    """Return the policy that is named, or the file's, or the default one."""
    from torchyard.checks.policies import load_policy, parse_policy

    if name is None and config is not None and config.check.text:
        return parse_policy(config.check.policy, config.check.text)
    return load_policy(name or (config.check.policy if config else "default"))
