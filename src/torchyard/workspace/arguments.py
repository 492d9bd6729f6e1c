"""Refuse wrong arguments of use cases."""

from collections.abc import Collection, Mapping

from torchyard.errors import UsageError
from torchyard.model.suggest import did_you_mean


def check_name(name: str, known: Collection[str], what: str) -> None:
    """Refuse a name that is not in a table."""
    if name not in known:
        msg = f"there is no {what} `{name}`"
        raise UsageError(msg, hint=did_you_mean(name, known))


def refuse_given(options: Mapping[str, object], why: str) -> None:
    """Refuse options that were given but have no effect."""
    for name, value in options.items():
        if value:
            msg = f"`{name}` {why}"
            raise UsageError(msg)
