"""The gate for requirements: every name that a package asks for is somewhere, or is declared."""

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
"""Names that a hint lists one by one."""
_FAMILY = 3
"""Names with one beginning that are given as a glob."""


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
    hint = _hint(names, external) if names else ""
    for number, ((needy, where), found) in enumerate(needs.items(), 1):
        verb = "needs" if len(needy) == 1 else "need"
        what = f"{listed(needy, 2)} {verb} {listed(found)}, which the channel does not have{where}"
        yield Diagnostic(what, None, hint if number == len(needs) else None)


def _hint(names: Sequence[str], external: Iterable[str]) -> str:
    """How to declare names; many of them by a few globs."""
    globs = suggested_globs(names)
    declared = ", ".join(f'"{name}"' for name in (*external, *globs))
    options = " ".join(f"--external {quote(name)}" for name in globs)
    return (
        "anybody could publish these names: add them, or declare them, in the file by "
        f"external = [{declared}], or by {options}"
    )


def suggested_globs(names: Sequence[str]) -> list[str]:
    """Return a few globs for many names: of families such as `nvidia-*`, or of everything.

    Names that are wanted from a certain place are not among those that `*` matches.
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
    """Where installers find a package: its variant, or its subdir; SHARED for all."""
    part = parse_part(package.part)
    return package.entry.variant if part.rules.HAS_VARIANTS else _subdir(part)


def _subdir(part: PartName) -> str:
    return SHARED if part.name == part.rules.FIRST_PART else part.name


def _has(homes: Collection[str], home: str) -> bool:
    """Return whether what is in some places is found from another."""
    return bool(homes) if home == SHARED else home in homes or SHARED in homes


def _is_known(name: str, external: Iterable[str]) -> bool:
    """Whether a name is declared; if it is wanted from a certain place, the place has to be."""
    sign = _sign(name)
    return any_match(name, (glob for glob in external if sign in glob))


def _sign(name: str) -> str:
    """What separates a name and the place that it is wanted from, if there is one."""
    return next((sign for sign in (" @ ", "::") if sign in name), "")


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
