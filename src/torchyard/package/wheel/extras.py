"""Requirements that no installation of a wheel needs."""

import re
from collections.abc import Mapping

from packaging.markers import Marker
from packaging.requirements import Requirement

from torchyard.package.wheel.name import split_tags

_SYSTEMS = {
    "linux": ("posix", "linux", "Linux"),
    "macosx": ("posix", "darwin", "Darwin"),
    "win": ("nt", "win32", "Windows"),
}
"""The values of os_name, sys_platform and platform_system on the systems of a tag."""


def is_excluded(requirement: Requirement, file: str = "") -> bool:
    """Return whether a requirement applies only with an extra, or not on a wheel's systems.

    All other conditions count as met, to keep a requirement that applies on some machine without an
    extra: `sys_platform == "linux" or extra == "gpu"`.
    """
    marker = requirement.marker
    return marker is not None and not _holds(marker._markers, _facts(file))  # noqa: SLF001 - has no public form


def _facts(file: str) -> dict[str, str]:
    """Return the values of markers that are fixed by a wheel's tags."""
    facts = {"extra": ""}
    tag, abi, platform = (*split_tags(file), "", "", "")[:3]
    if (python := re.fullmatch(r"cp3(\d+)", tag)) and abi != "abi3":
        facts |= {"python_version": f"3.{python[1]}", "implementation_name": "cpython"}
    if system := re.match(r"(?:many|musl)?(linux)|macosx|win", platform):
        fields = ("os_name", "sys_platform", "platform_system")
        facts |= zip(fields, _SYSTEMS[system[1] or system[0]], strict=True)
    return facts


def _holds(parts: object, facts: Mapping[str, str]) -> bool:
    """Return whether a marker may be true; `and` binds closer than `or`."""
    if isinstance(parts, tuple):
        words = [part.serialize() for part in parts]
        names = facts.keys() & words
        if not names or ("extra" in names and words[1] not in ("==", "!=")):  # installers disagree
            return True
        return Marker(" ".join(words)).evaluate(dict(facts))
    if not isinstance(parts, list):
        msg = f"a marker has the part {parts!r}"
        raise TypeError(msg)
    choices = [True]
    for part in parts:
        if part == "or":
            choices.append(True)
        elif part != "and":
            choices[-1] = choices[-1] and _holds(part, facts)
    return any(choices)
