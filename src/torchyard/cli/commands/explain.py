"""`torchyard explain`: why something is in the plan, or is not, and what a rule is for."""

import click

from torchyard.app.toolchain_id import with_toolchain_id
from torchyard.cli.options import file_option, json_option, set_option
from torchyard.config.load import load_config
from torchyard.config.revisions import load_config_at
from torchyard.errors import SelectionError, UsageError
from torchyard.model.identifier import Identifier, parse
from torchyard.model.suggest import did_you_mean, nearest
from torchyard.plan.build import make_plan_with
from torchyard.plan.diff import FingerprintDiff
from torchyard.plan.explain import explain
from torchyard.reports.document import encode
from torchyard.reports.plan.document import explain_document
from torchyard.reports.plan.text import story_report
from torchyard.terminal.console import show, write

_RULE = "rule"


@click.command("explain")
@click.argument("identifier", metavar="IDENTIFIER | rule")
@click.argument("rule", metavar="[RULE]", required=False)
@file_option
@set_option
@click.option(
    "--against", metavar="OLD", help="Name what changed since OLD: a file or a git revision."
)
@json_option
def command(
    *,
    identifier: str,
    rule: str | None,
    file: str,
    changes: tuple[str, ...],
    against: str | None,
    as_json: bool,
) -> None:
    """Explain why a cell or job exists or not, what it shares, and what its fingerprint contains.

    `explain rule` lists the rules of `torchyard check` and `torchyard index check`, and `explain
    rule RULE` says why one of them matters, and what to do about its findings. RULE may be a glob,
    such as 'index-*', which lists the rules that it matches.
    """
    if identifier == _RULE:
        _explain_rule(rule, as_json=as_json)
        return
    if rule is not None:
        msg = f"`explain` takes one identifier, and `{rule}` is a second one"
        raise UsageError(msg, hint="explain them one by one")
    parsed = _parsed(identifier)
    others = [against] if against else []
    config = load_config(file, changes, others=others)
    plan = make_plan_with(with_toolchain_id(config, file), parsed)
    differences = None
    if against:
        before = with_toolchain_id(load_config_at(against, file, others=[file]), file)
        old = make_plan_with(before, parsed)
        differences = FingerprintDiff(old, plan)
    story = explain(plan, parsed)
    if as_json:
        write(encode(explain_document(plan, story, differences)))
    else:
        show(story_report(plan, story, differences))


def _parsed(text: str) -> Identifier:
    """Parse an identifier; the error for the name of a rule says how rules are explained."""
    try:
        return parse(text)
    except SelectionError as error:
        from torchyard.checks.registry import RULES

        rule = nearest(text, RULES)
        if text != f"{_RULE}s" and rule is None:
            raise
        words = f"{_RULE} {rule}" if rule else _RULE
        hint = f"rules are explained by `torchyard explain {words}`"
        raise SelectionError(str(error), hint=hint) from error


def _explain_rule(identifier: str | None, *, as_json: bool) -> None:
    from torchyard.checks.registry import RULES
    from torchyard.model.matrix import matches
    from torchyard.reports.check.document import rules_document
    from torchyard.reports.check.text import rule_report, rules_report

    rules = [rule for rule in RULES.values() if matches(rule.id, identifier or "*")]
    if not rules:
        msg = f"there is no rule `{identifier}`"
        raise SelectionError(msg, hint=did_you_mean(identifier or "", RULES))
    if as_json:
        write(encode(rules_document(rules)))
    elif identifier in RULES:
        show(rule_report(rules[0]))
    else:
        show(rules_report(rules))
