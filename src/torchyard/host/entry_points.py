"""Entry points: the commands, engines, recipes, rules and compute platforms of plug-ins."""

from importlib.metadata import EntryPoint, entry_points

from torchyard.errors import HostError


def entry_points_in(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group, by name."""
    found = {point.name: point for point in entry_points(group=group)}
    return dict(sorted(found.items()))


def load(point: EntryPoint, what: str) -> object:
    """Import the object of an entry point; raise HostError if that fails."""
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        origin = point.dist.name if point.dist else point.value
        msg = f"`{what}` comes from {origin}, which can't be loaded: {error}"
        raise HostError(msg, hint=f"install it anew: pip install {origin}") from error
