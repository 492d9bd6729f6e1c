"""`torchyard index`: look at indexes, our own and those of others."""

import click

from torchyard.cli.options import json_option
from torchyard.errors import AuditError
from torchyard.report.console import show, write


@click.group("index")
def command() -> None:
    """Look at indexes, our own and those of others."""


@command.command("check")
@click.argument("place", metavar="URL|DIR")
@click.option(
    "--project",
    "projects",
    multiple=True,
    metavar="GLOB",
    help="Look only at these projects, or these conda packages.",
)
@click.option(
    "--external",
    multiple=True,
    metavar="GLOB",
    help="Names that are meant to come from elsewhere, such as 'nvidia-*'.",
)
@click.option(
    "--deep", is_flag=True, help="Read every package, and compare it with what the index says."
)
@json_option
def check(
    *,
    place: str,
    projects: tuple[str, ...],
    external: tuple[str, ...],
    deep: bool,
    as_json: bool,
) -> None:
    """Audit a simple index or a conda channel, as an outsider.

    It may be anybody's: an address with a list of projects, the page of one project, a conda
    channel, or a channel of torchyard with all that is in it; on the web or in a directory.
    """
    from torchyard.config.tables import load_tables
    from torchyard.host.reach import address_of
    from torchyard.inspect.audit_documents import index_check_document
    from torchyard.inspect.audit_reports import index_check_report
    from torchyard.inspect.document import encode
    from torchyard.publish.audit import audit
    from torchyard.publish.audit_rules import Findings
    from torchyard.publish.audit_simple import Scope

    subdirs = [platform.conda_subdir for platform in load_tables().platforms.values()]
    findings = Findings()
    scope = Scope(projects=projects, external=external, deep=deep)
    audited = audit(address_of(place), scope, subdirs, findings)
    document = index_check_document(audited, findings, deep=deep)
    if as_json:
        write(encode(document))
    else:
        show(index_check_report(document))
    if document.findings["error"]:
        msg = f"errors were found in {audited.url}"
        raise AuditError(msg, hint="docs/how-to/check-an-index.md tells what each rule is about")
