"""Policies: those that are shipped, those of users, and what they do to findings."""

from datetime import date
from pathlib import Path

import pytest
from tests.support.contents import ABOUT, TODAY, findings, wheel

from torchyard.checks.check import apply_rules
from torchyard.checks.enforce import Enforcer
from torchyard.checks.policies import load_policies, load_policy, parse_policy
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.registry import RULES
from torchyard.checks.rule import Finding, Severity
from torchyard.errors import ConfigError, HostError, UsageError
from torchyard.package.contents import Contents

ALLOWED = """\
[[allow]]
rule = "top-level"
reason = "the next release moves it"
until = 2027-06-30
member = "LICENSE"
"""


def _stray(*names: str) -> Contents:
    return wheel(dict.fromkeys(names, b"x"))


def _top_level(text: str, package: Contents, today: date = TODAY) -> list[Finding]:
    policy = parse_policy("own.toml", f'{text}\n[severity]\nsbom-missing = "off"\n')
    return list(apply_rules([package], policy, today)[0].findings)


def test_the_shipped_policies() -> None:
    assert set(load_policies()) == {"default", "strict", "pypi"}
    (warning,) = findings(_stray("LICENSE"), policy=load_policy("default"))
    (error,) = findings(_stray("LICENSE"), policy=load_policy("strict"))
    assert (warning.severity, error.severity) == (Severity.WARNING, Severity.ERROR)
    assert load_policy("pypi").budget


def test_severities() -> None:
    def severities(**severity: str) -> list[str]:
        lines = "\n".join(f'{name.replace("_", "-")} = "{word}"' for name, word in severity.items())
        policy = parse_policy("own.toml", f"strict = true\n[severity]\n{lines}\n")
        return [finding.severity.value for finding in findings(_stray("LICENSE"), policy=policy)]

    assert severities() == ["error"]
    assert severities(top_level="warning") == ["warning"]
    assert severities(top_level="note") == ["note"]
    assert severities(top_level="off") == []


def test_severities_by_globs() -> None:
    """A name counts more than a glob, and a later glob more than an earlier one."""
    text = """\
[severity]
linking-orphan = "note"
"l*" = "warning"
"linking-*" = "off"
"label-?ell" = "error"
"""
    said = parse_policy("own.toml", text).severity
    linking = {rule for rule in RULES if rule.startswith("linking-")} - {"linking-orphan"}
    assert len(linking) > 3
    assert {rule for rule, word in said.items() if word == "off"} == linking
    assert (said["linking-orphan"], said["label-cell"]) == ("note", "error")
    assert (said["label-compute"], said["leaked-path"]) == ("warning", "warning")
    assert set(said) <= set(RULES)
    own = parse_policy("own.toml", 'base = "pypi"\n[severity]\n"leaked-*" = "off"\n').severity
    assert own["leaked-path"] == "off", "though the base names it"
    assert own["top-level"] == "error"


def test_an_allowance_for_rules_by_a_glob() -> None:
    text = ALLOWED.replace("top-level", "top-*").replace('member = "LICENSE"\n', "")
    for finding in _top_level(text, _stray("LICENSE", "README")):
        assert (finding.rule, finding.severity) == ("top-level", Severity.NOTE)
        assert finding.allowed == "the next release moves it"
    (note,) = _top_level(text, wheel())
    assert note.rule == "top-level"
    assert note.what == "the policy allows `top-*` until 2027-06-30, but there is nothing to allow"
    (other,) = _top_level(text.replace("top-*", "index-*"), _stray("LICENSE"))
    assert (other.rule, other.severity) == ("top-level", Severity.WARNING)


def test_packages_that_torchyard_made_should_be_better() -> None:
    def severity(policy: str, **texts: bytes) -> Severity:
        changes = {
            "x.pth": b"import os",
            **{f"{ABOUT}/{name}.json": t for name, t in texts.items()},
        }
        (found,) = findings(wheel(changes), policy=parse_policy("own.toml", policy))
        assert found.rule == "pth-file"
        return found.severity

    spec = {"torchyard-spec": b'{"tasks": []}'}
    off = '[severity]\nlinking-rpath = "off"\n'
    assert severity(off) is Severity.WARNING
    assert severity(off, **spec) is Severity.ERROR
    assert severity(f"strict = true\n{off}") is Severity.ERROR
    assert severity(f'{off}pth-file = "note"\n', **spec) is Severity.NOTE


def test_a_mild_hit_is_a_warning_unless_the_policy_or_torchyard_is_stricter() -> None:
    def severity(policy: str, **own: bool) -> Severity | None:
        enforcer = Enforcer(parse_policy("own.toml", policy), TODAY)
        return enforcer.severity(RULES["linking-unresolved"], mild=True, **own)

    assert severity("") is Severity.WARNING
    assert severity("", is_own=True) is Severity.ERROR
    assert severity("strict = true\n") is Severity.ERROR
    assert severity('[severity]\nlinking-unresolved = "error"\n') is Severity.ERROR
    assert severity('[severity]\nlinking-unresolved = "note"\n') is Severity.NOTE


def test_what_is_allowed_is_a_note_with_its_reason() -> None:
    kept, allowed = _top_level(ALLOWED, _stray("LICENSE", "README"))
    assert (kept.member, kept.severity, kept.allowed) == ("README", Severity.WARNING, "")
    assert (allowed.member, allowed.severity) == ("LICENSE", Severity.NOTE)
    assert allowed.allowed == "the next release moves it"


def test_an_allowance_ends() -> None:
    (last,) = _top_level(ALLOWED, _stray("LICENSE"), date(2027, 6, 30))
    (after,) = _top_level(ALLOWED, _stray("LICENSE"), date(2027, 7, 1))
    assert last.severity is Severity.NOTE
    assert (after.severity, after.allowed) == (Severity.WARNING, "")
    assert after.what == f"{last.what} (allowed until 2027-06-30: the next release moves it)"
    assert after.hint == last.hint != ""


def test_an_allowance_for_nothing_is_told_once() -> None:
    policy = parse_policy("own.toml", ALLOWED)
    first, second = apply_rules([wheel(), wheel()], policy, TODAY)
    (note,) = first.findings
    assert (note.rule, note.severity) == ("top-level", Severity.NOTE)
    assert "nothing to allow" in note.what
    assert second.findings == ()
    used = apply_rules([wheel(), _stray("LICENSE")], policy, TODAY)
    assert used[0].findings == ()


def test_an_allowance_for_other_packages() -> None:
    others = f'{ALLOWED}package = "huge-*"\n'
    (found,) = _top_level(others, _stray("LICENSE"))
    assert found.severity is Severity.WARNING


def test_findings_are_sorted_by_severity_rule_and_member() -> None:
    found = findings(_stray("b.txt", "a.txt", "x.pth"))
    assert [f.member for f in found] == ["x.pth", "a.txt", "b.txt"]


def test_a_policy_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(f'budget = "1 GB"\n{ALLOWED}')
    policy = load_policy(str(path))
    assert policy.allow[0].until == date(2027, 6, 30)
    assert policy.budget == "1 GB"
    with pytest.raises(HostError, match="no file"):
        load_policy(str(tmp_path / "missing.toml"))


def test_a_policy_on_top_of_a_shipped_one() -> None:
    pypi = load_policy("pypi")
    text = f'base = "pypi"\nsystem = ["libx.so"]\n{ALLOWED}[severity]\ntop-level = "note"\n'
    policy = parse_policy("own.toml", text)
    assert policy.severity == {**pypi.severity, "top-level": "note"}
    assert (policy.budget, policy.strict, policy.system) == (pypi.budget, False, ("libx.so",))
    assert [allowance.member for allowance in policy.allow] == ["LICENSE"]
    assert parse_policy("own.toml", 'base = "strict"').strict
    assert parse_policy("own.toml", 'base = "pypi"\nbudget = "1 GB"').budget == "1 GB"


def test_an_unknown_policy() -> None:
    with pytest.raises(UsageError, match="no policy `strikt`") as caught:
        load_policy("strikt")
    assert "did you mean `strict`?" in str(caught.value.diagnostics[0].hint)


@pytest.mark.parametrize(
    ("text", "what", "hint", "line"),
    [
        ('[severity]\ntop-levels = "off"', "no rule `top-levels`", "did you mean `top-level`?", 2),
        ('[severity]\ntop-level = "of"', "can't be `of`", "did you mean `off`?", 2),
        (ALLOWED.replace("top-", "tap-"), "no rule `tap-level`", "did you mean `top-level`?", 2),
        (ALLOWED.replace("the next release moves it", " "), "needs a reason", "explain why", 3),
        (ALLOWED.replace("2027-06-30", '"2027-02-30"'), "must be a day such as", "", 4),
        (ALLOWED.replace("until = 2027-06-30\n", ""), "lacks the required key `until`", "", 1),
        (ALLOWED.replace("until", "until_"), "unknown key `until_`", "did you mean `until`?", 4),
        ('[severity]\n"linkin-*" = "off"', "no rule matches `linkin-*`", "mean `linking-*`?", 2),
        (ALLOWED.replace("top-level", "tap-*"), "no rule matches `tap-*`", "mean `top-*`?", 2),
        ('budget = "1 gigabyte"', "the budget can't be read", 'write "1 GB"', 1),
        ('budgets = "1 GB"', "unknown key `budgets`", "did you mean `budget`?", 1),
        ('base = "pipy"', "no policy `pipy` to start from", "did you mean `pypi`?", 1),
        ('system = "libx.so"', "must be a list of strings", "", 1),
        ("strict =", "this is not TOML", "", 1),
    ],
)
def test_mistakes_in_a_policy(text: str, what: str, hint: str, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_policy("own.toml", text)
    (told,) = caught.value.diagnostics
    assert what in told.what
    assert hint in (told.hint or "")
    assert told.span is not None
    assert told.span.line == line


def test_a_policy_that_says_nothing_is_the_usual_one() -> None:
    assert parse_policy("own.toml", "") == CheckPolicy()
