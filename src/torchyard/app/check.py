"""Check packages against rules."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from torchyard.checks.policy import CheckPolicy
from torchyard.errors import CheckError, SelectionError
from torchyard.model.job_spec import JobSpec
from torchyard.package.contents import Contents
from torchyard.reports.check.document import CheckDocument
from torchyard.workspace.clock import current_date
from torchyard.workspace.progress import Meter, no_meter, read_metered


def check_packages(
    packages: Iterable[str | Path],
    *,
    policy: str = "default",
    rules: Sequence[str] = (),
    html: str | Path | None = None,
    digests: bool = True,
    spec: JobSpec | None = None,
    meter: Meter = no_meter,
) -> CheckDocument:
    """Read packages, and return what is wrong with them.

    Packages that are given together are checked together: one may have what another needs.

    Args:
        packages: Wheels, conda packages and libtorch zips.
        policy: How strict to be: `default`, `strict`, `pypi`, or a TOML file.
        rules: Globs of rules to check, also of those that are off; all of the policy's if empty.
        html: File to write a page with pictures to.
        digests: Whether the report names each package by its sha256, too.
        spec: The specification of the job that delivered the packages, if they come from one.
        meter: Shows progress.
    """
    from torchyard.host.files import write_text

    paths = [Path(path) for path in packages]
    contents = [read_metered(path, meter) for path in paths]
    document = check_contents(
        contents,
        policy,
        rules=rules,
        digests=file_digests(paths) if digests else (),
        spec=spec,
    )
    if html is not None:
        from torchyard.checks.registry import RULES
        from torchyard.reports.check.html import check_page

        write_text(str(html), check_page(document, contents, RULES), replace=True)
    return document


def check_contents(
    contents: Sequence[Contents],
    policy_name: str,
    *,
    rules: Sequence[str] = (),
    digests: Sequence[str] = (),
    spec: JobSpec | None = None,
) -> CheckDocument:
    """Check packages that were read, under a policy as it is today."""
    from torchyard.checks.check import apply_rules
    from torchyard.checks.policies import load_policy
    from torchyard.reports.check.document import check_document
    from torchyard.workspace.torch_releases import kept_torches

    policy = load_policy(policy_name)
    if rules:
        policy = _only(rules, policy)
    day = current_date()
    checked = apply_rules(contents, policy, day, spec, kept_torches)
    return check_document(checked, policy, policy_name, day, digests)


def file_digests(paths: Iterable[Path]) -> list[str]:
    """Return the sha256 of each file, which names it in a report that is kept as evidence."""
    from hashlib import file_digest

    digests = []
    for path in paths:
        with path.open("rb") as file:
            digests.append(file_digest(file, "sha256").hexdigest())
    return digests


def refuse_errors(document: CheckDocument) -> None:
    """Raise CheckError if a check has found errors."""
    if document.findings["error"]:
        bad = [p.file for p in document.packages if any(f.severity == "error" for f in p.findings)]
        rules = {f.rule for p in document.packages for f in p.findings if f.severity == "error"}
        msg = f"errors were found in {', '.join(bad)}"
        raise CheckError(msg, hint=f"`torchyard explain rule {min(rules)}` says more")


def _only(globs: Sequence[str], policy: CheckPolicy) -> CheckPolicy:
    """Return the policy with exactly those rules on that a glob names."""
    import msgspec

    from torchyard.checks.registry import PACKAGE_RULES, RULES
    from torchyard.model.matrix import any_match, matches
    from torchyard.model.suggest import did_you_mean

    for glob in globs:
        if not any(matches(rule, glob) for rule in PACKAGE_RULES):
            msg = f"`--rule {glob}` names no rule"
            raise SelectionError(msg, hint=did_you_mean(glob, PACKAGE_RULES))
    off = {rule: "off" for rule in PACKAGE_RULES if not any_match(rule, globs)}
    left = RULES.keys() - off
    allow = tuple(one for one in policy.allow if any(matches(rule, one.rule) for rule in left))
    said = {rule: word for rule, word in policy.severity.items() if word != "off"}
    return msgspec.structs.replace(policy, severity={**said, **off}, allow=allow)
