"""What an error of a program that fetches something means, by the table `data/network.toml`."""

import re
from functools import cache

from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.values import Value


class _Fault(Value, kw_only=True):
    pattern: str
    hint: str


@cache
def _faults() -> dict[str, _Fault]:
    return parse_table("network.toml", read_data("network.toml"), dict[str, _Fault])


def network_fault(said: str) -> str:
    """Return the name of the first row that fits what a program said, or ""."""
    rows = _faults().items()
    return next((name for name, row in rows if re.search(row.pattern, said, re.IGNORECASE)), "")


def network_hint(said: str) -> str:
    """Return what to do about what a program said, or "" if it is not about the network."""
    name = network_fault(said)
    return _faults()[name].hint if name else ""
