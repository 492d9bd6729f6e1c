"""Check packages against rules."""

from collections.abc import Iterable, Sequence
from hashlib import file_digest
from pathlib import Path

from msgspec.structs import replace

from torchyard.checks.check import apply_rules
from torchyard.checks.policies import load_policy, policy_digest
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.registry import PACKAGE_RULES, RULES
from torchyard.checks.text import count_findings
from torchyard.errors import SelectionError
from torchyard.features.check.report import CheckReport
from torchyard.host.files import write_text
from torchyard.model.job_spec import JobSpec
from torchyard.model.matrix import any_match, matches
from torchyard.model.suggest import did_you_mean
from torchyard.version import __version__
from torchyard.workspace.clock import current_date
from torchyard.workspace.progress import Meter, no_meter, read_metered
from torchyard.workspace.torch_releases import kept_torches


def check_packages(
    packages: Iterable[str | Path],
    *,
    policy: str = "default",
    rules: Sequence[str] = (),
    html: str | Path | None = None,
    for_json: bool = True,
    spec: JobSpec | None = None,
    meter: Meter = no_meter,
) -> CheckReport:
    """Read packages, and return their findings.

    Packages that are given together are checked together: one may contain what another needs.

    Args:
        packages: Wheels, conda packages and libtorch zips.
        policy: How strict to be: `default`, `strict`, `pypi`, or a TOML file.
        rules: Globs of rules to check, even if they are off; by default, those of the policy.
        html: File for a page with pictures.
        for_json: Whether the report includes the sha256 of packages.
        spec: The specification of the job that delivered the packages, if any.
        meter: Shows progress.
    """
    paths = [Path(path) for path in packages]
    contents = [read_metered(path, meter) for path in paths]
    chosen = _only(rules, load_policy(policy)) if rules else load_policy(policy)
    day = current_date()
    checked = apply_rules(contents, chosen, day, spec, kept_torches)
    if for_json:
        pairs = zip(checked, paths, strict=True)
        checked = [replace(package, sha256=_digest(path)) for package, path in pairs]
    report = CheckReport(
        torchyard=__version__,
        policy=policy,
        policy_digest=policy_digest(chosen),
        date=day.isoformat(),
        findings=count_findings(checked),
        packages=checked,
    )
    if html is not None:
        from torchyard.features.check.page import check_html

        write_text(str(html), check_html(report, contents), replace=True)
    return report


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _only(globs: Sequence[str], policy: CheckPolicy) -> CheckPolicy:
    """Return the policy with only the rules that match a glob."""
    for glob in globs:
        if not any(matches(rule, glob) for rule in PACKAGE_RULES):
            msg = f"`--rule {glob}` names no rule"
            raise SelectionError(msg, hint=did_you_mean(glob, PACKAGE_RULES))
    off = {rule: "off" for rule in PACKAGE_RULES if not any_match(rule, globs)}
    left = RULES.keys() - off
    allow = tuple(a for a in policy.allow if any(matches(rule, a.rule) for rule in left))
    on = {rule: word for rule, word in policy.severity.items() if word != "off"}
    return replace(policy, severity={**on, **off}, allow=allow)
