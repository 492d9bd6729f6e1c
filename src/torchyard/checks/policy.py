"""How strict a check is: `data/policies.toml`, or a file of one's own."""

from typing import Literal

from torchyard.model.values import Value


class Allowance(Value, kw_only=True):
    """A finding that is known and accepted, for a reason and up to a day."""

    rule: str
    reason: str
    until: str
    """`2027-06-30`; afterwards the finding counts again."""
    package: str = "*"
    member: str = "*"


class CheckPolicy(Value, kw_only=True):
    """Severities other than the rules' own, what is let through, and a budget for the size."""

    severity: dict[str, Literal["error", "warning", "note", "off"]] = {}
    allow: tuple[Allowance, ...] = ()
    budget: str = ""
    """The largest size of a package: `1 GB`; empty if there is none."""
    system: tuple[str, ...] = ()
    """Libraries that may come from the system, besides those of `layouts.toml`."""
