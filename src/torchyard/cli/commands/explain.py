"""`torchyard explain`: why something is in the plan, or is not, and what a rule is for."""

from itertools import groupby

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import file_option, json_option, names_argument, set_option
from torchyard.config.load import load_config
from torchyard.config.revisions import load_config_at
from torchyard.errors import HostError, SelectionError, UsageError
from torchyard.model.identifier import Identifier
from torchyard.model.recipe import Stage
from torchyard.model.suggest import did_you_mean, nearest
from torchyard.plan.build import make_plan_with
from torchyard.plan.diff import FingerprintDiff
from torchyard.plan.explain import explain
from torchyard.plan.find import find_named
from torchyard.reports.plan.document import explain_document
from torchyard.reports.plan.text import story_report
from torchyard.terminal.console import show, write
from torchyard.terminal.json_output import encode
from torchyard.workspace.toolchain_id import with_toolchain_id

_RULE = "rule"


@in_section(HelpSection.UNDERSTAND)
@click.command("explain")
@names_argument("words", nargs=-1, required=True, metavar="SELECTOR... | rule [RULE]")
@file_option
@set_option
@click.option(
    "--against", metavar="OLD", help="Name what changed since OLD: a file or a git revision."
)
@json_option
def command(
    *,
    words: tuple[str, ...],
    file: str,
    changes: tuple[str, ...],
    against: str | None,
    as_json: bool,
) -> None:
    """Explain why cells and jobs exist, and what they share.

    It lists what their fingerprints contain. With --json, there is a document for each of them.

    `explain rule` lists the rules of `torchyard check` and `torchyard channel check`, and `explain
    rule RULE` says why one of them matters, and what to do about its findings. RULE may be a glob,
    such as 'index-*', which lists the rules that it matches.
    """
    if words[0] == _RULE:
        if len(words) > len(("rule", "RULE")):
            msg = f"`explain rule` takes one rule or glob, and not {len(words) - 1}"
            raise UsageError(msg, hint="quote a glob, so that the shell does not expand it")
        _explain_rule("".join(words[1:]) or None, as_json=as_json)
        return
    others = [against] if against else []
    try:
        config = load_config(file, changes, others=others)
        named = find_named(config, words)
    except (HostError, SelectionError) as error:
        about_rules = _about_rules(words[0])
        if about_rules is None:
            raise
        raise about_rules from error
    config = with_toolchain_id(config, file)
    before = load_config_at(against, file, others=[file]) if against else None
    before = with_toolchain_id(before, file) if before else None
    for _, group in groupby(named, key=_channel):
        alike = list(group)
        plan = make_plan_with(config, alike[0])
        old = make_plan_with(before, alike[0]) if before else None
        differences = FingerprintDiff(old, plan) if old else None
        for story in (explain(plan, identifier) for identifier in alike):
            if as_json:
                write(encode(explain_document(plan, story, differences)))
            else:
                show(story_report(plan, story, differences))


def _channel(identifier: Identifier) -> str:
    """Return the channel whose plan an identifier belongs to, if it is about one."""
    return identifier.path if identifier.stage is Stage.PUBLISH else ""


def _about_rules(word: str) -> SelectionError | None:
    """Return the error for a word that names rules: it says how these are explained."""
    from torchyard.checks.registry import RULES

    rule = nearest(word, RULES)
    if word != f"{_RULE}s" and rule is None:
        return None
    what = f"{_RULE} {rule}" if rule else _RULE
    msg = f"`{word}` names no cell or job"
    return SelectionError(msg, hint=f"rules are explained by `torchyard explain {what}`")


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
