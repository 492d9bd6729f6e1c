"""A rule: a small function that looks at a package and tells what is wrong with it.

Its docstring is its page of documentation: what is wrong when it finds something, why that matters,
and what to do. `torchyard explain rule ID` shows it.
"""

import inspect
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

from torchyard.checks.subject import Subject
from torchyard.model.values import Value


class Severity(StrEnum):
    """How bad it is: errors make `check` fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Hit(NamedTuple):
    """What a rule found: what is wrong, and in which member, if it is about one."""

    what: str
    member: str = ""
    hint: str = ""


Find = Callable[[Subject], Iterator[Hit]]


class Rule(NamedTuple):
    """A rule. `reason` is one line for tables: why anybody should care.

    In a package that torchyard made, which should be better than others, `own` is its severity.
    """

    id: str
    severity: Severity
    reason: str
    page: str
    find: Find
    own: Severity | None = None

    @property
    def severities(self) -> str:
        """How bad it is, in words."""
        more = f"; {self.own} in packages that torchyard made" if self.own else ""
        return f"{self.severity}{more}"


class Finding(Value, kw_only=True):
    """A hit of a rule, with the severity that the policy gives it.

    What a policy allows is still told, with its reason, as a note.
    """

    rule: str
    severity: Severity
    what: str
    member: str = ""
    hint: str = ""
    allowed: str = ""


RULES: dict[str, Rule] = {}
"""All rules, in the order in which they run; see `torchyard.checks.registry`."""


def rule(
    identifier: str, severity: Severity, reason: str, *, own: Severity | None = None
) -> Callable[[Find], Find]:
    """Make a function a rule: `linking-unresolved`, the area first."""

    def register(find: Find) -> Find:
        RULES[identifier] = Rule(
            identifier, severity, reason, inspect.cleandoc(find.__doc__ or ""), find, own
        )
        return find

    return register
