"""`torchyard check`: what is wrong with packages, wherever they come from."""

import gc
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from torchyard.app.clock import current_date
from torchyard.app.reading import read
from torchyard.checks.policy import CheckPolicy
from torchyard.cli.options import json_option, policy_option
from torchyard.errors import CheckError, SelectionError
from torchyard.host.files import write_text
from torchyard.package.contents import Contents
from torchyard.reports.check.document import CheckDocument
from torchyard.terminal.console import show, write


@click.command("check")
@click.argument("packages", nargs=-1, required=True, type=click.Path(path_type=Path))
@policy_option
@click.option(
    "--rule",
    "globs",
    multiple=True,
    metavar="GLOB",
    help="Check only these rules, also those that are off; `torchyard explain rule` lists them.",
)
@click.option("--html", metavar="FILE", help="Write a page with pictures, too.")
@json_option
def command(
    *,
    packages: tuple[Path, ...],
    policy_name: str,
    globs: tuple[str, ...],
    html: str | None,
    as_json: bool,
) -> None:
    """Read wheels, conda packages and libtorch zips, and tell what is wrong with them.

    Packages that are named together are checked together: one may have what another needs.
    """
    from torchyard.reports.document import encode

    gc.disable()  # packages have many members, and none of them is garbage
    contents = [read(path) for path in packages]
    digests = digests_of(packages) if as_json else ()
    document = checked(contents, policy_name, globs, digests)
    if html is not None:
        from torchyard.checks.registry import RULES
        from torchyard.reports.check.html import check_page

        write_text(html, check_page(document, contents, RULES), replace=True)
    if as_json:
        write(encode(document))
    else:
        from torchyard.host.demangle import demangled
        from torchyard.reports.check.text import check_report, shown_symbols

        show(check_report(document, demangled(shown_symbols(document))))
    refuse_errors(document)


def checked(
    contents: Sequence[Contents],
    policy_name: str,
    globs: tuple[str, ...] = (),
    digests: Sequence[str] = (),
) -> CheckDocument:
    """Check packages under a policy as it is today."""
    from torchyard.checks.check import check
    from torchyard.checks.policy import load_policy
    from torchyard.reports.check.document import check_document

    policy = _only(globs, load_policy(policy_name)) if globs else load_policy(policy_name)
    day = current_date()
    return check_document(check(contents, policy, day), policy, policy_name, day, digests)


def digests_of(paths: Iterable[Path]) -> list[str]:
    """What names each file in a report that is kept as evidence."""
    from hashlib import file_digest

    digests = []
    for path in paths:
        with path.open("rb") as file:
            digests.append(file_digest(file, "sha256").hexdigest())
    return digests


def refuse_errors(document: CheckDocument) -> None:
    """Fail if a check has found errors."""
    if document.findings["error"]:
        bad = [p.file for p in document.packages if any(f.severity == "error" for f in p.findings)]
        rules = {f.rule for p in document.packages for f in p.findings if f.severity == "error"}
        msg = f"errors were found in {', '.join(bad)}"
        raise CheckError(msg, hint=f"`torchyard explain rule {min(rules)}` tells more")


def _only(globs: tuple[str, ...], policy: CheckPolicy) -> CheckPolicy:
    """The policy, with all rules off that no glob names, and none of the others."""
    import msgspec

    from torchyard.checks.registry import PACKAGE_RULES
    from torchyard.model.matrix import any_match, matches
    from torchyard.model.suggest import did_you_mean

    for glob in globs:
        if not any(matches(rule, glob) for rule in PACKAGE_RULES):
            msg = f"`--rule {glob}` names no rule"
            raise SelectionError(msg, hint=did_you_mean(glob, PACKAGE_RULES))
    off = {rule: "off" for rule in PACKAGE_RULES if not any_match(rule, globs)}
    allow = tuple(one for one in policy.allow if one.rule not in off)
    said = {rule: word for rule, word in policy.severity.items() if word != "off"}
    return msgspec.structs.replace(policy, severity={**said, **off}, allow=allow)
