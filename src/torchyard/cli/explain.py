"""`torchyard explain`: why something is in the plan, or is not."""

import click

from torchyard.cli.options import file_option, json_option, set_option
from torchyard.config.load import load_yard
from torchyard.config.revisions import load_yard_of
from torchyard.config.tables import load_tables
from torchyard.inspect.documents import encode, explain_cell_document, explain_job_document
from torchyard.inspect.tables import cell_report, job_report
from torchyard.model.identifier import Identifier, parse
from torchyard.model.recipe import Stage
from torchyard.model.yard import Yard
from torchyard.plan.build import make_plan
from torchyard.plan.diff import Differences
from torchyard.plan.explain import check_label, explain_cell
from torchyard.plan.graph import Plan
from torchyard.plan.select import Selection
from torchyard.report.console import show, write


@click.command("explain")
@click.argument("identifier")
@file_option
@set_option
@click.option(
    "--against", metavar="OLD", help="Name what changed since OLD: a file or a git revision."
)
@json_option
def command(
    *, identifier: str, file: str, changes: tuple[str, ...], against: str | None, as_json: bool
) -> None:
    """Tell why a cell or job exists or not, what it shares, and what its fingerprint is made of."""
    parsed = parse(identifier)
    plan = _plan(load_yard(file, changes), parsed)
    differences = None
    if against:
        differences = Differences(_plan(load_yard_of(against, file), parsed), plan)
    check_label(plan, parsed)
    if parsed.stage:
        job = plan.find(parsed.stage, parsed.path)
        document = explain_job_document(plan, job, differences)
        report = job_report(plan, job, differences)
    else:
        story = explain_cell(plan, parsed)
        document = explain_cell_document(plan, story, differences)
        report = cell_report(plan, story, differences)
    if as_json:
        write(encode(document))
    else:
        show(report)


def _plan(yard: Yard, identifier: Identifier) -> Plan:
    """Plan the whole matrix, or for a publish job the subset that its channel receives."""
    channel = yard.channels.get(identifier.path) if identifier.stage is Stage.PUBLISH else None
    return make_plan(yard, load_tables(), Selection(channel.subset if channel else None))
