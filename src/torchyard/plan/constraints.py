"""What the tables allow, for any matrix."""

from torchyard.model.config import Config
from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.recipe import Dimension
from torchyard.model.tables import TORCH_PREFIX

Scope = tuple[str, ...]
"""The first fields of a job's cell, or the name of a channel."""

Head = tuple[str, str, str]
"""Platform, compute and variant: the fields of a cell that name its block."""


def impossible(head: Head, config: Config) -> str | None:
    """Return why nothing can be built for a block, or None."""
    platform, compute, variant = head
    if platform not in config.tables.compute[compute].platforms:
        return f"{compute} is not made for {platform}"
    blas = config.tables.platforms[platform].blas
    if config.project.recipe.variant is Dimension.BLAS and variant not in blas:
        return f"{variant} is not made for {platform}"
    return None


def unreleased(head: Head, config: Config) -> str | None:
    """Return why a block has no pins of a torch release for its packages, or None."""
    _, compute, variant = head
    if not config.tables.compute[compute].pinned:
        return None
    name = release_name(config, variant)
    release = config.tables.releases.get(name or "")
    if name is None or (release is not None and compute in release.libraries):
        return None
    return f"the tables have no {compute} build of torch {name}"


def without_python(cell: Cell, config: Config) -> str | None:
    """Return why there is no torch for the Python of an extension's cell, or None."""
    name = release_name(config, cell.variant)
    release = config.tables.releases.get(name or "")
    if release is None or cell.python in (ANY_PYTHON, *(release.pythons or (cell.python,))):
        return None
    return f"torch {name} has no wheels for {cell.python}"


def release_name(config: Config, variant: str) -> str | None:
    """Return the torch release whose pins apply: the project's own, or an extension's torch."""
    if config.project.recipe.is_extension:
        return variant.removeprefix(TORCH_PREFIX)
    return config.project.release


def is_release_bound(config: Config, head: Head) -> bool:
    """Return whether packages of a block go to a channel that another channel promotes from."""
    promoted = {channel.promote_from for channel in config.channels.values()}
    for channel in config.channels.values():
        if channel.name in promoted and channel.promote_from is None:
            if channel.subset is None:
                return True
            if config.subsets[channel.subset].pattern.matches(head):
                return True
    return False
