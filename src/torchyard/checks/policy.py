"""How strict a check is: `data/policies.toml`, or a file of one's own."""

from collections.abc import Collection, Iterator
from datetime import date
from functools import cache
from typing import Literal

from torchyard.config.decode import decode_as
from torchyard.config.document import Document, Path
from torchyard.config.tables import parse
from torchyard.errors import ConfigError, DataError, Diagnostic, UsageError
from torchyard.host.files import read_data, read_text
from torchyard.model.quantity import parse_size
from torchyard.model.suggest import did_you_mean
from torchyard.model.values import Value


class Allowance(Value, kw_only=True):
    """A finding that is known and accepted, for a reason and up to a day."""

    rule: str
    reason: str
    until: date
    """The last day; afterwards the finding counts again."""
    package: str = "*"
    """A glob over names of packages' files."""
    member: str = "*"


class CheckPolicy(Value, kw_only=True):
    """Severities other than the rules' own, what is let through, and a budget for the size."""

    base: str = ""
    """The name of a shipped policy to begin with; what is said here is added, or goes first."""
    strict: bool = False
    """Warnings are errors, but for rules that `severity` names."""
    severity: dict[str, Literal["error", "warning", "note", "off"]] = {}
    allow: tuple[Allowance, ...] = ()
    budget: str = ""
    """The largest size of a package: `1 GB`; empty if there is none."""
    system: tuple[str, ...] = ()
    """Libraries that may come from the system, besides those of `layouts.toml`."""


def load_policy(name_or_path: str) -> CheckPolicy:
    """A policy that is shipped, or one from a TOML file."""
    known = load_policies()
    if name_or_path in known:
        return known[name_or_path]
    if not name_or_path.endswith(".toml"):
        msg = f"there is no policy `{name_or_path}`"
        hint = f"{did_you_mean(name_or_path, known)}; the name of a file has to end in .toml"
        raise UsageError(msg, hint=hint)
    return parse_policy(name_or_path, read_text(name_or_path))


def parse_policy(name: str, text: str) -> CheckPolicy:
    """Read a policy from the text of a file, or tell all that is wrong with it."""
    document = Document(name, text)
    policy = decode_as(document, CheckPolicy)
    wrong = [
        Diagnostic(what, document.span(path, at_key=path[0] == "severity"), hint)
        for path, what, hint in (*_unknown_base(policy), *_problems(policy, _rules()))
    ]
    if wrong:
        raise ConfigError.of(wrong)
    return _over(load_policies()[policy.base], policy) if policy.base else policy


def _over(base: CheckPolicy, own: CheckPolicy) -> CheckPolicy:
    """A policy on top of another one."""
    return CheckPolicy(
        strict=base.strict or own.strict,
        severity={**base.severity, **own.severity},
        allow=(*base.allow, *own.allow),
        budget=own.budget or base.budget,
        system=(*base.system, *own.system),
    )


@cache
def load_policies() -> dict[str, CheckPolicy]:
    """The policies that are shipped, by name."""
    policies = parse("policies", read_data("policies.toml"), CheckPolicy)
    for name, policy in policies.items():
        for _, what, _ in _problems(policy, _rules()):
            msg = f"the policy {name} in data/policies.toml is wrong: {what}"
            raise DataError(msg)
    return policies


def _rules() -> Collection[str]:
    from torchyard.checks.registry import RULES  # noqa: PLC0415 - rules know what a policy is

    return RULES


def _unknown_base(policy: CheckPolicy) -> Iterator[tuple[Path, str, str]]:
    known = load_policies()
    if policy.base and policy.base not in known:
        what = f"there is no policy `{policy.base}` to begin with"
        yield ("base",), what, did_you_mean(policy.base, known)


def _problems(policy: CheckPolicy, rules: Collection[str]) -> Iterator[tuple[Path, str, str]]:
    """What is wrong with each value, and what to write instead."""
    for name in policy.severity:
        if name not in rules:
            yield ("severity", name), f"there is no rule `{name}`", did_you_mean(name, rules)
    for index, allowance in enumerate(policy.allow):
        if allowance.rule not in rules:
            hint = did_you_mean(allowance.rule, rules)
            yield ("allow", index, "rule"), f"there is no rule `{allowance.rule}`", hint
        if not allowance.reason.strip():
            hint = "say why this is accepted, for those who read the report"
            yield ("allow", index, "reason"), "an allowance needs a reason", hint
    if policy.budget:
        try:
            parse_size(policy.budget)
        except ValueError as error:
            yield ("budget",), f"the budget can't be read: {error}", 'write "1 GB", for example'
