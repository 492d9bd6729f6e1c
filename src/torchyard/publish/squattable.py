"""The gate for requirements: every required name exists, or is declared as external."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from shlex import quote

from torchyard.errors import Diagnostic
from torchyard.index.entry import SHARED
from torchyard.index.sections import SECTIONS
from torchyard.model.matrix import any_match
from torchyard.model.quantity import listed
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.head import Head
from torchyard.publish.channel.layout import PartName, parse_part
from torchyard.publish.staged import Package

_MOST_NAMES = 6
"""The most names to list in a hint."""
_FAMILY = 3
"""From this many, names with a common prefix become a glob."""


def squattable(
    channel: Channel, head: Head, packages: Sequence[Package], external: tuple[str, ...]
) -> Iterator[Diagnostic]:
    """Return required names that do not exist, so that anyone could register them.

    An installer looks in one variant, or in a conda subdir and `noarch`. Packages for all variants
    may require packages that only some have. The last hint is for all names.
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
    hint = _hint(names, external) if names else ""
    for number, ((needy, where), found) in enumerate(needs.items(), 1):
        verb = "needs" if len(needy) == 1 else "need"
        what = f"{listed(needy, 2)} {verb} {listed(found)}, which the channel does not have{where}"
        yield Diagnostic(what, None, hint if number == len(needs) else None)


def _hint(names: Sequence[str], external: Iterable[str]) -> str:
    """Return how to declare names; many are combined into globs."""
    globs = suggested_globs(names)
    declared = ", ".join(f'"{name}"' for name in (*external, *globs))
    options = " ".join(f"--external {quote(name)}" for name in globs)
    return (
        "anyone could publish these names: add them, or declare them, in the file by "
        f"external = [{declared}], or by {options}"
    )


def suggested_globs(names: Sequence[str]) -> list[str]:
    """Return globs for many names: families such as `nvidia-*`, or `*`.

    `*` does not match names required from a certain address or channel.
    """
    placed = [name for name in names if _sign(name)]
    plain = [name for name in names if not _sign(name)]
    if len(plain) > _MOST_NAMES:
        families = Counter(name.partition("-")[0] for name in plain)
        large = {family for family, size in families.items() if size >= _FAMILY}
        plain = [name for name in plain if name.partition("-")[0] not in large]
        plain = sorted([*plain, *(f"{family}-*" for family in large)])
    return [*(["*"] if len(plain) > _MOST_NAMES else plain), *placed]


def _home(package: Package) -> str:
    """Return where installers find a package: its variant or subdir, or SHARED."""
    part = parse_part(package.part)
    return package.entry.variant if part.rules.HAS_VARIANTS else _subdir(part)


def _subdir(part: PartName) -> str:
    return SHARED if part.name == part.rules.FIRST_PART else part.name


def _has(homes: Collection[str], home: str) -> bool:
    """Return whether a package in `homes` is visible from `home`."""
    return bool(homes) if home == SHARED else home in homes or SHARED in homes


def _is_known(name: str, external: Iterable[str]) -> bool:
    """Return whether a name is declared; one with an address or channel needs that declared."""
    sign = _sign(name)
    return any_match(name, (glob for glob in external if sign in glob))


def _sign(name: str) -> str:
    """Return the separator between a name and its address or channel, if any."""
    return next((sign for sign in (" @ ", "::") if sign in name), "")


def _projects(
    _channel: Channel, head: Head, section: str, _asked: Collection[str]
) -> dict[str, set[str]]:
    """Return the variants with files of each project of a section."""
    parts = ((parse_part(name), part) for name, part in head.parts.items())
    return {
        name.name: {*part.variants, *([SHARED] if part.shared else [])}
        for name, part in parts
        if name.section == section
    }


def _names_in(
    channel: Channel, head: Head, section: str, asked: Collection[str]
) -> dict[str, set[str]]:
    """Return the parts of a section with the required packages."""
    homes: dict[str, set[str]] = {}
    for text in (text for text in head.parts if asked and text.startswith(f"{section}/")):
        part = parse_part(text)
        for entry in channel.state(head, text).entries:
            if (name := part.rules.project(part.name, entry)) in asked:
                homes.setdefault(name, set()).add(_subdir(part))
    return homes
