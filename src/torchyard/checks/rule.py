"""Rules, their findings, and their registration.

A rule about packages is a small function; its docstring is its page of documentation: what is
wrong, why it matters, and what to do. A rule about indexes has only a page, as one request of the
index check serves several rules. `torchyard explain rule ID` shows the page of either.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from torchyard.checks.subject import Subject
from torchyard.errors import HostError
from torchyard.model.severity import Severity
from torchyard.model.values import Reported

__all__ = [
    "INDEX_RULES",
    "PACKAGE_RULES",
    "RULES",
    "Finding",
    "Hit",
    "PackageRule",
    "Rule",
    "Severity",
    "index_rule",
    "paragraphs",
    "rule",
]


class Hit(NamedTuple):
    """A hit of a rule; a mild one is at most a warning, except in torchyard's own packages."""

    what: str
    member: str = ""
    hint: str = ""
    is_mild: bool = False


Find = Callable[[Subject], Iterator[Hit]]
_R = TypeVar("_R", bound="Rule")


class Rule(Reported, kw_only=True):
    """A rule by its identifier. `reason` is a line about why a finding matters.

    `own` is its severity in packages that torchyard built, which must meet higher standards.
    """

    id: str
    severity: Severity
    reason: str
    page: str
    own: Severity | None = None

    @property
    def severities(self) -> str:
        """The severity in words, with that for torchyard's own packages."""
        more = f"; {self.own} in packages that torchyard made" if self.own else ""
        return f"{self.severity}{more}"


class PackageRule(Rule, kw_only=True):
    """A rule about packages: a function that yields the defects of a package."""

    find: Find


class Finding(Reported, kw_only=True):
    """A hit of a rule, with the severity that the policy gives it.

    A finding that the policy allows becomes a note, with the reason in `allowed`.
    """

    rule: str
    severity: Severity
    what: str
    member: str = ""
    hint: str = ""
    allowed: str = ""


RULES: dict[str, Rule] = {}
"""All rules by identifier; import it from `torchyard.checks.registry`, which fills it."""
PACKAGE_RULES: dict[str, PackageRule] = {}
"""The rules of `torchyard check`, in the order in which they run."""
INDEX_RULES: dict[str, Rule] = {}
"""The rules of `torchyard channel check`."""


def rule(
    identifier: str, severity: Severity, reason: str, *, own: Severity | None = None
) -> Callable[[Find], Find]:
    """Register a function as a rule about packages, such as `linking-unresolved`, area first."""

    def decorate(find: Find) -> Find:
        page = inspect.cleandoc(find.__doc__ or "")
        made = PackageRule(
            id=identifier, severity=severity, reason=reason, page=page, own=own, find=find
        )
        PACKAGE_RULES[identifier] = _registered(made)
        return find

    return decorate


def index_rule(identifier: str, severity: Severity, reason: str, page: str) -> Rule:
    """Register a rule about indexes, which the index check applies itself."""
    made = Rule(id=identifier, severity=severity, reason=reason, page=inspect.cleandoc(page))
    INDEX_RULES[identifier] = _registered(made)
    return made


def _registered(made: _R) -> _R:
    if made.id in RULES:
        msg = f"there are two rules `{made.id}`"
        raise HostError(msg, hint="remove the plug-in with the second one, or rename its rule")
    RULES[made.id] = made
    return made


def paragraphs(page: str) -> list[str]:
    """Return a page without line breaks, except in indented text."""
    parts = re.split(r"\n\s*\n", page)
    return [part if "\n " in part else part.replace("\n", " ") for part in parts]
