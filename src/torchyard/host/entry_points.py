"""Parts of other distributions: entry points of plug-ins, and optional modules."""

from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

from torchyard.errors import HostError


def entry_points_in(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group, by name; refuse the same name in two distributions."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        other = found.setdefault(point.name, point)
        if distribution_name(other) != distribution_name(point):
            both = f"{distribution_name(other)} and {distribution_name(point)}"
            msg = f"{both} both define `{point.name}` for {group}: one would hide the other"
            raise HostError(msg, hint="uninstall one of them")
    return dict(sorted(found.items()))


def require_module(name: str, user: str, distribution: str = "") -> None:
    """Raise HostError if a module of an extra, which `user` needs, is not installed."""
    if find_spec(name) is None:
        distribution = distribution or f"py-{name.replace('_', '-')}"  # as those of `conda` are
        msg = f"{distribution} is not installed, which {user} need"
        raise HostError(msg, hint=f"pip install {distribution}")


def distribution_name(point: EntryPoint) -> str:
    """Return the distribution of an entry point, else its object's name."""
    return point.dist.name if point.dist else point.value


def versions_in(*groups: str) -> list[str]:
    """Return the entry points of groups as text, each with its distribution and version."""
    return [
        f"{group} {name} {distribution_name(point)} {point.dist.version if point.dist else ''}"
        for group in groups
        for name, point in entry_points_in(group).items()
    ]


def load(point: EntryPoint, what: str) -> object:
    """Import the object of an entry point; raise HostError if that fails."""
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        origin = distribution_name(point)
        msg = f"`{what}` comes from {origin}, which can't be loaded: {error}"
        raise HostError(msg, hint=f"install it again: pip install {origin}") from error
