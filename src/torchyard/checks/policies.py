"""Read policies, from `data/policies.toml` or the user's file."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TypeVar

import msgspec

from torchyard.checks.policy import CheckPolicy
from torchyard.checks.registry import PLUG_INS, RULES, SHIPPED
from torchyard.checks.uploads import load_uploads
from torchyard.config.decode import decode_as
from torchyard.config.document import Document
from torchyard.config.positions import Path
from torchyard.config.tables import parse_data
from torchyard.errors import ConfigError, DataError, Diagnostic, UsageError
from torchyard.host.files import read_data, read_text
from torchyard.model.canonical import fingerprint
from torchyard.model.matrix import is_glob, matches
from torchyard.model.quantity import parse_size
from torchyard.model.suggest import did_you_mean

T = TypeVar("T")


def load_policy(name_or_path: str) -> CheckPolicy:
    """Return a shipped policy, or one from a TOML file."""
    policies = load_policies()
    if name_or_path in policies:
        return policies[name_or_path]
    if not name_or_path.endswith(".toml"):
        msg = f"there is no policy `{name_or_path}`"
        hint = f"{did_you_mean(name_or_path, policies)}; the name of a file must end in .toml"
        raise UsageError(msg, hint=hint)
    return parse_policy(name_or_path, read_text(name_or_path))


def parse_policy(name: str, text: str) -> CheckPolicy:
    """Parse a policy, or raise an error with all of its problems."""
    document = Document(name, text)
    policy = decode_as(document, CheckPolicy)
    wrong = [
        Diagnostic(what, document.span(path, at_key=path[0] == "severity"), hint)
        for path, what, hint in (*_unknown_base(policy), *_problems(policy))
    ]
    if wrong:
        raise ConfigError.of(wrong)
    policy = msgspec.structs.replace(policy, severity=_by_rule(policy.severity))
    return _over(load_policies()[policy.base], policy) if policy.base else policy


def _by_rule(values: Mapping[str, T]) -> dict[str, T]:
    """Return the value for each rule: by its name, else by the last matching glob."""
    globs = {rule: word for glob, word in values.items() for rule in RULES if matches(rule, glob)}
    return globs | {name: word for name, word in values.items() if name in RULES}


def policy_digest(policy: CheckPolicy) -> str:
    """Return the digest that names a policy in reports; plug-ins change it, too.

    So a report counts as evidence only with the same versions of the same rules and compute
    platforms.
    """
    more = [*PLUG_INS, *sorted(RULES.keys() - SHIPPED)]
    return fingerprint([fingerprint(policy), *more]) if more else fingerprint(policy)


def _over(base: CheckPolicy, own: CheckPolicy) -> CheckPolicy:
    """Return a policy on top of its base."""
    return CheckPolicy(
        strict=base.strict or own.strict,
        severity={**base.severity, **own.severity},
        allow=(*base.allow, *own.allow),
        budget=own.budget or base.budget,
        index=own.index or base.index,
        system=(*base.system, *own.system),
    )


@cache
def load_policies() -> dict[str, CheckPolicy]:
    """Return the shipped policies by name."""
    policies = parse_data("policies", read_data("policies.toml"), CheckPolicy)
    for name, policy in policies.items():
        for _, what, _ in _problems(policy):
            msg = f"the policy {name} in data/policies.toml is wrong: {what}"
            raise DataError(msg)
    return policies


def _unknown_base(policy: CheckPolicy) -> Iterator[tuple[Path, str, str]]:
    policies = load_policies()
    if policy.base and policy.base not in policies:
        what = f"there is no policy `{policy.base}` to start from"
        yield ("base",), what, did_you_mean(policy.base, policies)


def _problems(policy: CheckPolicy) -> Iterator[tuple[Path, str, str]]:
    """Yield the problem of each value, and what to write instead."""
    for name in policy.severity:
        if fault := _unknown_rule(name):
            yield ("severity", name), *fault
    for index, allowance in enumerate(policy.allow):
        if fault := _unknown_rule(allowance.rule):
            yield ("allow", index, "rule"), *fault
        if not allowance.reason.strip():
            hint = "explain why this is accepted; the report shows it"
            yield ("allow", index, "reason"), "an allowance needs a reason", hint
    if policy.index and policy.index not in load_uploads():
        what = f"the limits of the index `{policy.index}` are unknown"
        yield ("index",), what, did_you_mean(policy.index, load_uploads())
    if policy.budget:
        try:
            parse_size(policy.budget)
        except ValueError as error:
            yield ("budget",), f"the budget can't be read: {error}", 'write "1 GB", for example'


def _unknown_rule(name: str) -> tuple[str, str] | None:
    """Return the problem of a name or glob without a rule, and what to write instead."""
    if any(matches(rule, name) for rule in RULES):
        return None
    if is_glob(name):
        families = sorted({f"{rule.partition('-')[0]}-*" for rule in RULES})
        return f"no rule matches `{name}`", did_you_mean(name, families)
    return f"there is no rule `{name}`", did_you_mean(name, RULES)
