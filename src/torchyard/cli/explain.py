"""`torchyard explain`: why something is in the plan, or is not."""

import click

from torchyard.cli.identified import identified
from torchyard.cli.options import file_option, json_option, set_option
from torchyard.config.load import load_yard
from torchyard.config.revisions import load_yard_of
from torchyard.config.tables import load_tables
from torchyard.inspect.documents import encode, explain_document
from torchyard.inspect.reports import story_report
from torchyard.model.identifier import parse
from torchyard.plan.build import make_plan_with
from torchyard.plan.diff import Differences
from torchyard.plan.explain import explain
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
    tables = load_tables()
    others = [against] if against else []
    yard = load_yard(file, changes, others=others)
    plan = make_plan_with(identified(yard, file), tables, parsed)
    differences = None
    if against:
        before = identified(load_yard_of(against, file, others=[file]), file)
        old = make_plan_with(before, tables, parsed)
        differences = Differences(old, plan)
    story = explain(plan, parsed)
    if as_json:
        write(encode(explain_document(plan, story, differences)))
    else:
        show(story_report(plan, story, differences))
