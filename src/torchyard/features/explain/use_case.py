"""Why something is or is not in the plan, and the purpose of rules."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from torchyard.checks.registry import RULES
from torchyard.checks.rule import Rule
from torchyard.config.load import load_config
from torchyard.config.revisions import load_config_at
from torchyard.errors import HostError, SelectionError, UsageError
from torchyard.features.explain.report import Explained, ExplainedJob, ExplainReport
from torchyard.model.config import Config
from torchyard.model.identifier import Cell, Identifier, scope_of
from torchyard.model.matrix import matches
from torchyard.model.recipe import Stage
from torchyard.model.suggest import did_you_mean, nearest
from torchyard.plan.build import make_plan_with
from torchyard.plan.diff import Cause, FingerprintDiff
from torchyard.plan.explain import Explanation, explain, ingredients
from torchyard.plan.find import find_named
from torchyard.plan.graph import Job, Plan
from torchyard.workspace.toolchain_id import with_toolchain_id

_RULE = "rule"


def explain_names(
    words: Sequence[str],
    *,
    file: str = "torchyard.toml",
    changes: Sequence[str] = (),
    against: str | None = None,
) -> ExplainReport:
    """Explain why cells or jobs exist or not; or rules, if the first word is `rule`.

    Args:
        words: A selector of cells or jobs; or `rule`, and the name or a glob of rules.
        file: The configuration.
        changes: Changes to it, each as `KEY=VALUE`.
        against: An older configuration, or a git revision, to compare with.
    """
    if words[0] == _RULE:
        return ExplainReport(rules=_rules(words[1:]))
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
    return ExplainReport(explained=list(_explained(config, before, named)))


def _explained(
    config: Config, before: Config | None, named: Sequence[Identifier]
) -> Iterator[Explained]:
    for _, group in groupby(named, key=_channel):
        alike = list(group)
        plan = make_plan_with(config, alike[0])
        old = make_plan_with(before, alike[0]) if before else None
        differences = FingerprintDiff(old, plan) if old else None
        for identifier in alike:
            yield _explain(plan, explain(plan, identifier), differences)


def _explain(plan: Plan, found: Explanation, against: FingerprintDiff | None) -> Explained:
    stage = found.identifier.stage
    return Explained(
        id=str(found.identifier),
        stage=stage,
        planned=not found.absences,
        reasons=[Cause(absence.reason, str(absence.origin)) for absence in found.absences],
        admitted_by=found.admitted_by,
        subsets=found.subsets,
        overrides=[str(override.origin) for override in found.overrides],
        left_out=plan.config.left_out if stage is Stage.SOURCE else {},
        jobs=[_job(plan, job, against) for job in found.jobs],
        changed=_changes(found, against) if against else None,
    )


def _changes(found: Explanation, against: FingerprintDiff) -> Sequence[Cause]:
    """Return why a cell, or the explained job, differs from before."""
    stage, path = found.identifier.stage, found.identifier.path
    if stage is None and not found.absences:
        return against.cell_causes(Cell.from_path(path))
    return against.causes(stage or Stage.PACKAGE, scope_of(stage or Stage.PACKAGE, path))


def _job(plan: Plan, job: Job, against: FingerprintDiff | None) -> ExplainedJob:
    return ExplainedJob(
        id=job.identifier,
        stage=job.stage,
        fingerprint=job.fingerprint,
        packages=plan.packages_of(job),
        ingredients=list(ingredients(plan, job)),
        changed=against.causes(job.stage, job.scope) if against else None,
    )


def _channel(identifier: Identifier) -> str:
    """Return the channel whose plan has an identifier, if any."""
    return identifier.path if identifier.stage is Stage.PUBLISH else ""


def _about_rules(word: str) -> SelectionError | None:
    """Return the error for a word that names rules, with the right command."""
    rule = nearest(word, RULES)
    if word != f"{_RULE}s" and rule is None:
        return None
    what = f"{_RULE} {rule}" if rule else _RULE
    msg = f"`{word}` names no cell or job"
    return SelectionError(msg, hint=f"rules are explained by `torchyard explain {what}`")


def _rules(words: Sequence[str]) -> list[Rule]:
    """Return the rules that match a name or glob, by default all."""
    if len(words) > 1:
        msg = f"`explain rule` takes one rule or glob, not {len(words)}"
        raise UsageError(msg, hint="quote a glob, so that the shell does not expand it")
    name = "".join(words)
    rules = [rule for rule in RULES.values() if matches(rule.id, name or "*")]
    if not rules:
        msg = f"there is no rule `{name}`"
        raise SelectionError(msg, hint=did_you_mean(name, RULES))
    return msgspec.convert(rules, list[Rule], from_attributes=True)
