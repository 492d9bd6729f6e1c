"""Publish packages: read them, check them, and add them to a channel."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.checks.policy import CheckPolicy
from torchyard.checks.subject import Torches
from torchyard.errors import PublishError, SelectionError
from torchyard.model.conda_output import NONE
from torchyard.package.contents import Contents
from torchyard.package.read import read_package
from torchyard.package.zip.inflate import Progress, ignore_progress
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.channel.head import Head
from torchyard.publish.evidence import NO_EVIDENCE, Evidence, judge_by, read_evidence
from torchyard.publish.gates import Demands, Verdict, accept
from torchyard.publish.package_gates import is_untried
from torchyard.publish.plan_results import PlanResults
from torchyard.publish.publish import publish
from torchyard.publish.staged import Grouping, Package, made_elsewhere, read_staged
from torchyard.store.makers import Trust

_NAMED = 3
"""The most releases to name in an entry of the channel's log."""

TryOut = Callable[[Sequence[Package], Sequence[Package]], set[str]]
"""Returns the sha256 of working packages, given packages to test and available others."""


class PublishRequest(NamedTuple):
    """What to publish, and its requirements."""

    paths: tuple[Path, ...]
    """Files and directories; empty for all packages of `results`."""
    policy: CheckPolicy
    demands: Demands
    results: PlanResults | None = None
    """Results of the packages' plan, if known."""
    trust: Trust | None = None
    """The makers whose statements are published with packages; without it, none are."""
    try_out: TryOut | None = None
    """Runs smoke tests on this machine; None if code of packages must not run."""
    name: str = ""
    """The name of the channel, if it is new."""
    grouping: Grouping | None = None
    """None for the channel's."""
    dry_run: bool = False


class Means(NamedTuple):
    """The environment of a publication: time, torch releases, and progress."""

    now: str
    torches: Torches = tuple
    read: Callable[[Path], Contents] = read_package
    sending: Callable[[int], AbstractContextManager[Progress]] = lambda _: nullcontext(
        ignore_progress
    )
    """Opens a progress display for a number of bytes."""


class Submitted(NamedTuple):
    """The accepted packages, the new ones among them, and the channel's generation."""

    generation: int
    packages: Sequence[Package]
    new: Sequence[Package]
    notes: Sequence[str]


def submit(channel: Channel, request: PublishRequest, means: Means) -> Submitted:
    """Run all checks and publish; a dry run publishes nothing.

    Raises:
        PublishError: The channel refuses the packages; each diagnostic is a reason.
    """
    head = _head_for(channel, request)
    today = date.fromisoformat(means.now[:10])
    results, demands = request.results, request.demands
    evidence = read_evidence(results, request.policy, today) if results else NO_EVIDENCE
    packages = read_staged(
        request.paths or (results.packages() if results else ()),
        head.grouping,
        means.now,
        judge_by(request.policy, today, evidence.checked, means.torches),
        read=means.read,
        cell_for=results.cell_for if results else made_elsewhere,
        outputs=results.outputs if results else NONE,
        trust=request.trust,
    )
    if not packages:
        where = ", ".join(map(str, request.paths)) or "the store"
        msg = f"there is no package in {where}"
        raise SelectionError(msg, hint="name packages, or directories with packages")
    evidence = _with_smoke_tests(request, packages, evidence)
    head, verdict = accept(channel, head, packages, demands._replace(evidence=evidence))
    if request.dry_run:
        return Submitted(head.generation, verdict.packages, verdict.new, verdict.notes)
    reason = ChangeReason(_reason(verdict, is_partial=demands.partial), means.now)
    with means.sending(sum(package.entry.size for package in verdict.new)) as progress:
        done = publish(channel, head, verdict.packages, reason, progress)
    return Submitted(done.head.generation, verdict.packages, done.new, verdict.notes)


def _head_for(channel: Channel, request: PublishRequest) -> Head:
    """Return the channel's head, or the initial head of a new channel."""
    head = channel.head()
    if not head.generation:
        grouping = request.grouping or head.grouping
        return msgspec.structs.replace(head, name=request.name, grouping=grouping)
    if request.grouping not in (None, head.grouping):
        msg = f"the variants of `{channel.url}` are called after `{head.grouping}`"
        raise PublishError(msg, hint=f'a channel keeps its own: write variants = "{head.grouping}"')
    return head


def _with_smoke_tests(
    request: PublishRequest, packages: Sequence[Package], evidence: Evidence
) -> Evidence:
    """Run the smoke tests that the channel requires, and return the extended evidence."""
    demands = request.demands
    if demands.smoke != "required" or request.try_out is None:
        return evidence
    waived = {override.file for override in demands.overrides if override.gate == "smoke"}
    untried = [
        package
        for package in packages
        if is_untried(package, evidence, "required") and package.entry.file not in waived
    ]
    works = request.try_out(untried, packages) if untried else set()
    working = {(p.entry.cell, p.entry.sha256) for p in untried if p.entry.sha256 in works}
    return evidence._replace(working=evidence.working | working)


def _reason(verdict: Verdict, *, is_partial: bool) -> str:
    """Return the line for the channel's log."""
    releases = sorted({f"{package.name} {package.entry.version}" for package in verdict.packages})
    more = f" and {len(releases) - _NAMED} more" if len(releases) > _NAMED else ""
    without = "".join(f"; without {override}" for override in verdict.overridden)
    partial = " (partial)" if is_partial else ""
    return f"publish {', '.join(releases[:_NAMED])}{more}{partial}{without}"
