"""The meaning of programs' network errors, from the table `data/network.toml`."""

import re
from functools import cache

from torchyard.errors import ElsewhereError, HostError, TorchyardError
from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.values import Value


class NetworkFault(Value, kw_only=True):
    """A kind of error and its remedy; a passing one may not recur at the next attempt."""

    pattern: str
    hint: str
    passes: bool = False


@cache
def network_faults() -> dict[str, NetworkFault]:
    """Return the table; the first row that matches an error counts."""
    return parse_table("network.toml", read_data("network.toml"), dict[str, NetworkFault])


def network_error(text: str) -> TorchyardError | None:
    """Return the error for a program's output; None if it is not about the network."""
    for row in network_faults().values():
        if re.search(row.pattern, text, re.IGNORECASE):
            kind = ElsewhereError if row.passes else HostError
            return kind(text, hint=row.hint, reason="network")
    return None
