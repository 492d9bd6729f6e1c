"""The strictness of a check: severities, allowances, a budget."""

import tomllib
from datetime import date
from typing import Literal

from torchyard.host.files import read_data
from torchyard.model.values import Value


class Allowance(Value, kw_only=True):
    """A known finding that is accepted for a reason, up to a day."""

    rule: str
    """The name of a rule, or a glob over names of rules."""
    reason: str
    until: date
    """The last day; afterwards the finding counts again."""
    package: str = "*"
    """A glob over names of packages' files."""
    member: str = "*"


class CheckPolicy(Value, kw_only=True):
    """Severities that replace the rules' own, allowances, and a budget for the size."""

    base: str = ""
    """The name of a shipped policy to start from; values here are added, or override it."""
    strict: bool = False
    """Whether warnings are errors, except for rules in `severity`."""
    severity: dict[str, Literal["error", "warning", "note", "off"]] = {}
    """Severities by the name of a rule; in a file, also by globs over names."""
    allow: tuple[Allowance, ...] = ()
    budget: str = ""
    """The largest size of a package: `1 GB`; empty if there is none."""
    index: str = ""
    """The package index for uploads, whose limits apply: `pypi`; empty for none."""
    system: tuple[str, ...] = ()
    """Libraries that may come from the system, in addition to `layouts.toml`."""


def is_shipped(name: str) -> bool:
    """Return whether a policy is one of torchyard's own, without loading rules."""
    return name in tomllib.loads(read_data("policies.toml"))
