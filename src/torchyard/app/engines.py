"""Engines by name: the local one, and those of other distributions."""

from typing import cast

from torchyard.engines.engine import Engine
from torchyard.errors import UsageError
from torchyard.model.suggest import did_you_mean

LOCAL = "local"


def find_engine(name: str) -> Engine:
    """The engine of a name; it is loaded only now."""
    if name == LOCAL:
        from torchyard.engines.local import build

        return build
    from torchyard.host.entry_points import entry_points_in, load

    found = entry_points_in("torchyard.engines")
    if name not in found:
        hint = did_you_mean(name, [LOCAL, *found])
        if name == "buildbot":
            hint = "it comes with torchyard-farm: pip install torchyard-farm"
        msg = f"there is no engine `{name}`"
        raise UsageError(msg, hint=hint)
    return cast("Engine", load(found[name], f"--engine {name}"))
