"""Compute platforms by name: built-in ones, each with a table in `data/compute`, and plug-ins.

Plug-ins are entry points of the group `torchyard.computes`. They are loaded only when a compute is
requested that no built-in platform recognises, since most commands don't need them. Then they stay
loaded.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import cast

from torchyard.compute.platform import ComputePlatform, MachineFact
from torchyard.compute.table import ComputeRow, ComputeTable, LibraryRules
from torchyard.errors import DataError
from torchyard.host.files import list_data
from torchyard.model.tables import Compute

GROUP = "torchyard.computes"

PLAIN = "cpu"
"""The compute of packages without GPU code."""


_TORCH_LABEL = re.compile(r"\A(?:pt|torch)\d+(?:\.\d+)*(?=[a-z])")


class _Unknown(ComputePlatform):
    """The platform of unknown computes."""

    name = title = label = ""

    def table(self) -> ComputeTable[ComputeRow]:
        return ComputeTable({}, {}, "")


_UNKNOWN = _Unknown()


@cache
def _ours() -> tuple[ComputePlatform, ...]:
    names = sorted(name.removesuffix(".toml") for name in list_data("compute"))
    modules = (import_module(f"torchyard.compute.{name}") for name in names)
    return tuple(cast("ComputePlatform", module.platform) for module in modules)


@cache
def _plug_ins() -> tuple[ComputePlatform, ...]:
    from torchyard.host.entry_points import entry_points_in, load  # noqa: PLC0415 - slow

    ours = {platform.name for platform in _ours()}
    found = entry_points_in(GROUP).items()
    loaded = (load(point, f"compute {name}") for name, point in found if name not in ours)
    return tuple(cast("ComputePlatform", platform) for platform in loaded)


def compute_platforms(*, plug_ins: bool = False) -> tuple[ComputePlatform, ...]:
    """Return all platforms; those of plug-ins only once they were requested."""
    more = _plug_ins() if plug_ins or _plug_ins.cache_info().currsize else ()
    return (*_ours(), *more)


def platform_for(compute: str) -> ComputePlatform:
    """Return the platform of a compute; a placeholder if none recognises it."""
    for platform in compute_platforms():
        if platform.recognises(compute):
            return platform
    if compute:
        for platform in _plug_ins():
            if platform.recognises(compute):
                return platform
    return _UNKNOWN


def look_up(computes: Iterable[str]) -> None:
    """Load the plug-ins if no built-in platform recognises one of the computes."""
    for compute in computes:
        platform_for(compute)


def known_computes(platforms: Iterable[ComputePlatform]) -> dict[str, Compute]:
    """Return all values of the dimension `compute`; fail if a table is invalid."""
    found: dict[str, Compute] = {}
    for platform in platforms:
        for problem in platform.problems(platform.table().rows):
            raise DataError(problem)
        found |= platform.computes()
    return found


def library_rules() -> dict[str, LibraryRules]:
    """Return the rules for libraries of all platforms."""
    return {
        name: rules
        for platform in compute_platforms()
        for name, rules in platform.libraries().items()
    }


def compute_in(local: str) -> str:
    """Return the compute at the beginning of a local version: cu130 in `cu130.git1`.

    Extensions have their torch before it: `pt213cu130`.
    """
    label = _TORCH_LABEL.sub("", local, count=1)
    for plug_ins in (False, True) if label else ():
        for platform in compute_platforms(plug_ins=plug_ins):
            found = re.match(rf"(?:{platform.label})(?![^.])", label)
            if found:
                return found[0]
    return ""


def compute_of_wheels(versions: Mapping[str, str]) -> str:
    """Return the compute of wheels, by their names and versions, or ""."""
    pinned = {name: ".".join(version.split(".")[:2]) for name, version in versions.items()}
    found = (platform.compute_required(pinned) for platform in compute_platforms())
    return next(filter(None, found), "")


def is_arch(arch: str) -> bool:
    """Return whether an architecture has the syntax of any platform."""
    found = (platform.arch for platform in compute_platforms())
    return any(pattern and re.fullmatch(pattern, arch) for pattern in found)


def arch_hints() -> list[str]:
    """Return the syntax of each platform's architectures."""
    return [platform.arch_hint for platform in compute_platforms() if platform.arch_hint]


def device_codes(archs: Iterable[str]) -> Iterator[str]:
    """Yield the codes of a list of architectures of any platforms."""
    for arch in archs:
        for platform in compute_platforms():
            if platform.arch and re.fullmatch(platform.arch, arch):
                yield from platform.device_codes([arch])


def machine_facts() -> list[MachineFact]:
    """Return the relevant facts about GPUs of all platforms, including plug-ins."""
    return [fact for platform in compute_platforms(plug_ins=True) for fact in platform.facts]
