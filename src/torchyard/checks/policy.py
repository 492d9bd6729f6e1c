"""How strict a check is: severities, allowances, a budget."""

import tomllib
from datetime import date
from typing import Literal

from torchyard.host.files import read_data
from torchyard.model.values import Value


class Allowance(Value, kw_only=True):
    """A known finding that is accepted, for a reason and up to a day."""

    rule: str
    """The name of a rule, or a glob over names of rules."""
    reason: str
    until: date
    """The last day; afterwards the finding counts again."""
    package: str = "*"
    """A glob over names of packages' files."""
    member: str = "*"


class CheckPolicy(Value, kw_only=True):
    """Severities other than the rules' own, allowances, and a budget for the size."""

    base: str = ""
    """The name of a shipped policy to begin with; what is set here is added, or overrides it."""
    strict: bool = False
    """Warnings are errors, but for rules that `severity` names."""
    severity: dict[str, Literal["error", "warning", "note", "off"]] = {}
    """By the name of a rule; in a file, also by globs over names."""
    allow: tuple[Allowance, ...] = ()
    budget: str = ""
    """The largest size of a package: `1 GB`; empty if there is none."""
    index: str = ""
    """The package index that wheels are uploaded to, whose limits apply: `pypi`; empty for none."""
    system: tuple[str, ...] = ()
    """Libraries that may come from the system, in addition to `layouts.toml`."""


def is_shipped(name: str) -> bool:
    """Return whether a policy is one of torchyard's own; it takes no time, as no rule is loaded."""
    return name in tomllib.loads(read_data("policies.toml"))
