"""Wheels that a single one could replace, for all Pythons and torches that it fits."""

from collections.abc import Iterable

from torchyard.checks.compat.abi import ApiUse
from torchyard.checks.compat.extension import ExtensionWheel
from torchyard.checks.compat.toolkits import library_toolkits
from torchyard.package.wheel.compatible_tags import tag_platforms
from torchyard.package.wheel.name import ABI3

Fitting = tuple[str, ...]
"""The key of wheels that could be one."""


def fold_wheels(extensions: Iterable[ExtensionWheel]) -> dict[Fitting, list[ExtensionWheel]]:
    """Group wheels that a single one could replace, by their symbols.

    Such wheels are of one version of one project, for the same platform and the same toolkit.
    """
    found: dict[Fitting, list[ExtensionWheel]] = {}
    for extension in extensions:
        found.setdefault(_fitting(extension), []).append(extension)
    return found


def _fitting(extension: ExtensionWheel) -> Fitting:
    name = extension.name
    public, _, local = name.version.partition("+")
    platforms = sorted({p for tag in name.platform.split(".") for p in tag_platforms(tag)})
    needed = (soname for library in extension.libraries for soname in library.needed)
    toolkits = sorted({*extension.toolkits, *library_toolkits(needed)})
    python = {ApiUse.NONE: "", ApiUse.STABLE: ABI3, ApiUse.FULL: f"{name.python}-{name.abi}"}
    torch = local if extension.abi.torch.use is ApiUse.FULL else ""
    return (
        name.distribution,
        public,
        *platforms,
        *toolkits,
        python[extension.abi.python.use],
        torch,
    )
