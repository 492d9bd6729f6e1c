"""The conditions that packages must meet before publishing.

Each gate reports everything it refuses, with the reason and a fix.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from packaging.utils import InvalidWheelFilename, canonicalize_version, parse_wheel_filename
from packaging.version import InvalidVersion

from torchyard.errors import Diagnostic, PublishError
from torchyard.index.entry import SHARED, Entry, State
from torchyard.index.sections import section_of
from torchyard.model.conda_output import NONE, CondaOutputs
from torchyard.model.config import SandboxDemand, SmokeDemand
from torchyard.model.quantity import listed
from torchyard.package.wheel.metadata import fields_of, values
from torchyard.package.wheel.name import is_wheel_name
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.head import Head
from torchyard.publish.channel.layout import key_of, parse_part
from torchyard.publish.evidence import NO_EVIDENCE, Evidence
from torchyard.publish.package_gates import (
    GateOverride,
    is_planned,
    override,
    overriding,
    refused_packages,
    unconfined,
)
from torchyard.publish.publish import add, declaring, in_order, news
from torchyard.publish.squattable import squattable
from torchyard.publish.staged import METADATA, Package

_SAME = ("Requires-Dist", "Requires-Python", "Provides-Extra")
"""Metadata that resolvers read from one wheel and assume for all others of its version."""


class Demands(NamedTuple):
    """Requirements for publication beyond the contents of packages."""

    cells: frozenset[str] = frozenset()
    """The plan's cells of a version; empty without a plan."""
    outputs: CondaOutputs = NONE
    """The file's names and versions of conda packages."""
    external: tuple[str, ...] = ()
    """Globs over names that may be required although the channel lacks them."""
    upstream: tuple[str, ...] = ()
    """Addresses of indexes with these."""
    partial: bool = False
    smoke: SmokeDemand = "planned"
    sandbox: SandboxDemand = "any"
    overrides: tuple[GateOverride, ...] = ()
    evidence: Evidence = NO_EVIDENCE


class Verdict(NamedTuple):
    """Objections to publishing, and notes."""

    refusals: list[Diagnostic]
    notes: list[str]
    packages: list[Package]
    """All packages, with the overrides in use."""
    new: list[Package]
    """The packages that the channel lacks."""
    overridden: tuple[GateOverride, ...] = ()
    """The overrides of gates that would refuse their packages."""


def judge_all(
    channel: Channel, head: Head, packages: Sequence[Package], demands: Demands
) -> Verdict:
    """Apply all gates."""
    found = list(
        refused_packages(packages, demands.cells, demands.evidence, demands.smoke, demands.outputs)
    )
    if demands.sandbox == "required":
        found += unconfined(packages, demands.evidence)
    ruling = override(found, demands.overrides)
    packages = overriding(packages, ruling.used)
    notes = [f"{override} overrides a gate" for override in ruling.used]
    refusals = [*ruling.refusals, *clashing(packages)]
    refusals += squattable(channel, head, packages, (*head.external, *demands.external))
    if demands.cells:
        missing = [*incomplete(channel, head, packages, demands)]
        if demands.partial:
            notes += [refusal.what for refusal in missing]
        else:
            refusals += missing
        strange = [package.entry.file for package in packages if not package.entry.cell]
        if strange:
            notes.append(f"{listed(strange)} {'are' if len(strange) > 1 else 'is'} not in the plan")
    new: list[Package] = []
    for part, members in in_order(packages).items():
        state = channel.state(head, part)
        fresh = news(part, members, state)
        refusals += unequal(channel, state, members)
        refusals += ambiguous(state, members)
        try:
            add(parse_part(part), state, [package.entry for package in fresh])
        except PublishError as error:
            refusals += error.diagnostics
        new += fresh
    return Verdict(refusals, notes, packages, new, ruling.used)


def accept(
    channel: Channel, head: Head, packages: Sequence[Package], demands: Demands
) -> tuple[Head, Verdict]:
    """Return the head with external names; raise an error with everything that gates refuse."""
    verdict = judge_all(channel, head, packages, demands)
    if verdict.refusals:
        raise PublishError.of(verdict.refusals)
    return declaring(head, demands.external, demands.upstream), verdict


def clashing(packages: Iterable[Package]) -> Iterator[Diagnostic]:
    """Yield different files with the same name in an index."""
    found: dict[tuple[str, str], dict[str, set[str]]] = {}
    for part, entry in ((package.part, package.entry) for package in packages):
        variant = entry.variant if section_of(part).HAS_VARIANTS else SHARED
        known = found.setdefault((part, entry.file), {})
        known.setdefault(variant, set()).add(entry.sha256)
    clashes: dict[tuple[str, str], list[str]] = {}
    for (part, file), variants in found.items():
        for variant, own in variants.items():
            if len(own | variants.get(SHARED, set())) > 1:
                clashes.setdefault((part, variant), []).append(file)
    for (part, variant), files in clashes.items():
        where = f" for {variant}" if variant else ""
        hint = (
            'give them separate variants: variants = "compute-blas", or --variants'
            if section_of(part).HAS_VARIANTS
            else "give them different build numbers"
        )
        yield Diagnostic(f"there are different files named {listed(files)}{where}", None, hint)


def incomplete(
    channel: Channel, head: Head, packages: Iterable[Package], demands: Demands
) -> Iterator[Diagnostic]:
    """Yield cells of the plan that are neither given nor in the channel."""
    cells = demands.cells
    ordered = [p for p in packages if p.entry.cell or is_planned(p, cells, demands.outputs)]
    if not ordered:
        return
    labels = {cell.partition("/")[0] for cell in cells}
    given = {c for package in ordered for c in (package.entry.cell, *package.cells) if c}
    for label in sorted({cell.partition("/")[0] for cell in given} - labels):
        what = f"the file plans {', '.join(labels)}, so it is unknown whether {label} is complete"
        hint = "plan another version with --set project.version=…, or skip the check with --partial"
        yield Diagnostic(what, None, hint)
    missing = cells - given
    if missing:
        names = {package.name for package in ordered}
        for part in (part for part in head.parts if _may_have(part, names)):
            missing -= {entry.cell for entry in channel.state(head, part).entries}
    if missing:
        what = f"{len(missing)} of {len(cells)} packages are missing: {listed(sorted(missing))}"
        hint = "make them with `torchyard build`, or publish without them with --partial"
        yield Diagnostic(what, None, hint)


def _may_have(part: str, names: set[str]) -> bool:
    return section_of(part).MANY_PROJECTS or parse_part(part).name in names


def unequal(channel: Channel, state: State, packages: Sequence[Package]) -> Iterator[Diagnostic]:
    """Yield wheels of a version with different metadata for resolvers.

    Of the channel's wheels, each distinct sidecar is read once.
    """
    digests: dict[str, dict[str, tuple[str, bytes]]] = {}
    for package in packages:
        if package.metadata:
            known = digests.setdefault(package.entry.version, {})
            known.setdefault(package.entry.metadata, (package.entry.file, package.metadata))
    for entry in state.entries if digests else ():
        known = digests.get(entry.version, {})
        if known and entry.metadata and entry.metadata not in known:
            key = key_of(parse_part(packages[0].part), entry) + METADATA
            known[entry.metadata] = (entry.file, channel.objects.read(key) or b"")
    for version, known in digests.items():
        (file, first), *others = known.values()
        for other, text in others:
            field = next(
                (field for field in _SAME if _said(first, field) != _said(text, field)), ""
            )
            if field:
                what = f"`{file}` and `{other}` are both {version}, and differ in {field}"
                hint = "resolvers read one and assume it for all: use markers, or two versions"
                yield Diagnostic(what, None, hint)


def ambiguous(state: State, packages: Sequence[Package]) -> Iterator[Diagnostic]:
    """Yield wheels that installers can't distinguish, as names differ only in spelling.

    `Demo-1.0-py3-none-any.whl` would be installed instead of `demo-1.0-py3-none-any.whl`.
    """
    given = [package.entry for package in packages if is_wheel_name(package.entry.file)]
    releases = {_canonical(entry.version) for entry in given}
    known: dict[Hashable, list[Entry]] = {}
    for entry in (*state.entries, *given):
        if _canonical(entry.version) in releases and is_wheel_name(entry.file):
            known.setdefault(_as_installers_see(entry.file), []).append(entry)
    seen: set[str] = set()
    for entry in given:
        for other in known.get(_as_installers_see(entry.file), ()):
            is_near = SHARED in (entry.variant, other.variant) or entry.variant == other.variant
            is_other = other.file not in (entry.file, *seen) and other.sha256 != entry.sha256
            if is_near and is_other:
                seen.add(entry.file)
                what = f"installers can't tell `{entry.file}` from `{other.file}`, which differs"
                yield Diagnostic(what, None, "give it another version or build number")


@cache
def _canonical(version: str) -> str:
    return canonicalize_version(version)


def _as_installers_see(file: str) -> Hashable:
    """Return name, version, build and tags of a wheel, normalised."""
    try:
        return parse_wheel_filename(file)
    except (InvalidWheelFilename, InvalidVersion):
        return file  # invisible to installers


def _said(metadata: bytes, field: str) -> set[str]:
    return set(values(fields_of(metadata), field))
