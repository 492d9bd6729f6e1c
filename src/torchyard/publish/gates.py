"""The conditions that packages must meet before they are published.

Each gate reports everything it refuses: what, why, and what to do.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from shlex import quote
from typing import NamedTuple

from torchyard.checks.rule import Severity
from torchyard.errors import Diagnostic, PublishError
from torchyard.index.entry import SHARED, State
from torchyard.index.sections import SECTIONS, section_of
from torchyard.model.matrix import any_match
from torchyard.package.wheel.metadata import fields_of, values
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.head import Head
from torchyard.publish.channel.layout import PartName, key_of, parse_part
from torchyard.publish.publish import add, in_order, news
from torchyard.publish.staged import METADATA, Package

_SHOWN = 10
"""The number of names listed in a message; the others are counted."""

_SAME = ("Requires-Dist", "Requires-Python", "Provides-Extra")
"""What resolvers read of one wheel and take for true of all others of its version."""


class Demands(NamedTuple):
    """What is asked of packages beside what they are."""

    cells: frozenset[str] = frozenset()
    """All that the plan has of a version; nothing if no plan is known."""
    external: tuple[str, ...] = ()
    """Globs over names that may be required though nothing in the channel has them."""
    partial: bool = False


class Verdict(NamedTuple):
    """What stands against publishing, what should be known, and which packages would be new."""

    refusals: list[Diagnostic]
    notes: list[str]
    new: list[Package]


def judge_all(
    channel: Channel, head: Head, packages: Sequence[Package], demands: Demands
) -> Verdict:
    """Apply all gates."""
    notes: list[str] = []
    refusals = [*unproven(packages), *clashing(packages)]
    refusals += squattable(channel, head, packages, demands.external)
    if demands.cells and not demands.partial:
        refusals += incomplete(channel, head, packages, demands.cells)
    orderless = [package.entry.file for package in packages if not package.entry.cell]
    if demands.cells and orderless:
        notes.append(f"no plan knows {listed(orderless)}: nobody asks whether others are missing")
    new: list[Package] = []
    for part, members in in_order(packages).items():
        state = channel.state(head, part)
        fresh = news(part, members, state)
        refusals += unequal(channel, state, members)
        try:
            add(parse_part(part), state, [package.entry for package in fresh])
        except PublishError as error:
            refusals += error.diagnostics
        new += fresh
    return Verdict(refusals, notes, new)


def unproven(packages: Iterable[Package]) -> Iterator[Diagnostic]:
    """Packages that `check` has found errors in."""
    for package in packages:
        errors = [found for found in package.findings if found.severity is Severity.ERROR]
        if errors:
            first = errors[0]
            more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
            what = f"`{package.entry.file}` has errors: {first.what} [{first.rule}]{more}"
            yield Diagnostic(what, None, f"`torchyard check {package.path}` tells all")


def clashing(packages: Iterable[Package]) -> Iterator[Diagnostic]:
    """Different files that would have one name in one index."""
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
            'give them variants of their own: variants = "compute-blas", or --variants'
            if section_of(part).HAS_VARIANTS
            else "give them build numbers of their own"
        )
        yield Diagnostic(f"there are different files called {listed(files)}{where}", None, hint)


def incomplete(
    channel: Channel, head: Head, packages: Iterable[Package], cells: frozenset[str]
) -> Iterator[Diagnostic]:
    """Cells of the plan that are neither given nor in the channel."""
    ordered = [package for package in packages if package.entry.cell]
    if not ordered:
        return
    labels = {cell.partition("/")[0] for cell in cells}
    given = {package.entry.cell for package in ordered}
    for label in sorted({cell.partition("/")[0] for cell in given} - labels):
        what = f"the file plans {', '.join(labels)}, so nobody knows if {label} is complete"
        hint = "--set project.version=… plans another version; --partial does not ask"
        yield Diagnostic(what, None, hint)
    missing = cells - given
    if missing:
        names = {package.name for package in ordered}
        for part in (part for part in head.parts if _may_have(part, names)):
            missing -= {entry.cell for entry in channel.state(head, part).entries}
    if missing:
        what = f"{len(missing)} of {len(cells)} packages are missing: {listed(sorted(missing))}"
        hint = "`torchyard build` makes them; --partial publishes without them"
        yield Diagnostic(what, None, hint)


def _may_have(part: str, names: set[str]) -> bool:
    return section_of(part).MANY_PROJECTS or parse_part(part).name in names


def unequal(channel: Channel, state: State, packages: Sequence[Package]) -> Iterator[Diagnostic]:
    """Wheels of one version that do not say the same to resolvers.

    What is in the channel is asked by its sidecars, each distinct one once.
    """
    said: dict[str, dict[str, tuple[str, bytes]]] = {}
    for package in packages:
        if package.metadata:
            known = said.setdefault(package.entry.version, {})
            known.setdefault(package.entry.metadata, (package.entry.file, package.metadata))
    for entry in state.entries if said else ():
        known = said.get(entry.version, {})
        if known and entry.metadata and entry.metadata not in known:
            key = key_of(parse_part(packages[0].part), entry) + METADATA
            known[entry.metadata] = (entry.file, channel.objects.read(key) or b"")
    for version, known in said.items():
        (file, first), *others = known.values()
        for other, text in others:
            field = next(
                (field for field in _SAME if _said(first, field) != _said(text, field)), ""
            )
            if field:
                what = f"`{file}` and `{other}` are both {version}, and differ in {field}"
                hint = "resolvers read one and believe it of all: use markers, or two versions"
                yield Diagnostic(what, None, hint)


def _said(metadata: bytes, field: str) -> set[str]:
    return set(values(fields_of(metadata), field))


def squattable(
    channel: Channel, head: Head, packages: Sequence[Package], external: tuple[str, ...]
) -> Iterator[Diagnostic]:
    """Names that are required and nowhere to be found, so that anybody could take them.

    An installer looks in one variant, or in one subdir of a conda channel and in `noarch`. What
    fits all of them may require what only some of them have. The last hint is for all names.
    """
    needs: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for name, section in SECTIONS.items():
        own = [package for package in packages if package.part.startswith(f"{name}/")]
        asking: dict[str, dict[str, list[str]]] = {}
        for package in own:
            for wanted in package.requires:
                if not _is_known(wanted, external):
                    files = asking.setdefault(wanted, {}).setdefault(_home(package), [])
                    files.append(package.entry.file)
        find = _names_in if section.MANY_PROJECTS else _projects
        homes = find(channel, head, name, asking)
        for package in own:
            homes.setdefault(package.name, set()).add(_home(package))
        for wanted, askers in sorted(asking.items()):
            known = homes.get(wanted, set())
            lacking = {home: files for home, files in askers.items() if not _has(known, home)}
            if lacking:
                files = [file for found in lacking.values() for file in found]
                where = f" for {', '.join(sorted(lacking))}" if known else ""
                needs.setdefault((tuple(files), where), []).append(wanted)
    names = sorted({name for found in needs.values() for name in found})
    declared = ", ".join(f'"{name}"' for name in (*external, *names))
    options = " ".join(f"--external {quote(name)}" for name in names)
    hint = (
        "anybody could publish these names: add them, or declare them, in the file by "
        f"external = [{declared}], or by {options}"
    )
    for number, ((needy, where), found) in enumerate(needs.items(), 1):
        verb = "needs" if len(needy) == 1 else "need"
        what = f"{listed(needy, 2)} {verb} {listed(found)}, which the channel does not have{where}"
        yield Diagnostic(what, None, hint if number == len(needs) else None)


def _home(package: Package) -> str:
    """Where installers find a package: its variant, or its subdir; SHARED for all."""
    part = parse_part(package.part)
    return package.entry.variant if part.rules.HAS_VARIANTS else _subdir(part)


def _subdir(part: PartName) -> str:
    return SHARED if part.name == part.rules.FIRST_PART else part.name


def _has(homes: Collection[str], home: str) -> bool:
    """Whether what is in some places is found from another."""
    return bool(homes) if home == SHARED else home in homes or SHARED in homes


def _is_known(name: str, external: Iterable[str]) -> bool:
    """Whether a name is declared; if it is wanted from a certain place, the place has to be."""
    sign = next((sign for sign in (" @ ", "::") if sign in name), "")
    return any_match(name, (glob for glob in external if sign in glob))


def _projects(
    _channel: Channel, head: Head, section: str, _asked: Collection[str]
) -> dict[str, set[str]]:
    """The variants in which each project of a section has files."""
    parts = ((parse_part(name), part) for name, part in head.parts.items())
    return {
        name.name: {*part.variants, *([SHARED] if part.shared else [])}
        for name, part in parts
        if name.section == section
    }


def _names_in(
    channel: Channel, head: Head, section: str, asked: Collection[str]
) -> dict[str, set[str]]:
    """The parts of a section that have the packages which are asked for."""
    homes: dict[str, set[str]] = {}
    for text in (text for text in head.parts if asked and text.startswith(f"{section}/")):
        part = parse_part(text)
        for entry in channel.state(head, text).entries:
            if (name := part.rules.project(part.name, entry)) in asked:
                homes.setdefault(name, set()).add(_subdir(part))
    return homes


def listed(names: Sequence[str], most: int = _SHOWN) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"`{name}`" for name in names[:most]) + more
