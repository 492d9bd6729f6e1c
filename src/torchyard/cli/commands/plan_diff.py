"""`torchyard plan diff`: what a change of the file does to the packages."""

from collections.abc import Sequence

import click

from torchyard.app.toolchain_id import with_toolchain_id
from torchyard.cli.options import file_option, json_option, subset_option
from torchyard.config.revisions import load_yard_of
from torchyard.config.tables import load_tables
from torchyard.errors import SelectionError, VanishError
from torchyard.model.quantity import show_count
from torchyard.plan.build import make_plan
from torchyard.plan.diff import diff_plans
from torchyard.plan.graph import Plan
from torchyard.plan.select import Selection
from torchyard.reports.document import encode
from torchyard.reports.plan.document import diff_document
from torchyard.reports.plan.text import diff_report
from torchyard.terminal.console import show, warn, write


@click.command("diff")
@click.argument("old")
@click.argument("new")
@file_option
@subset_option
@click.option("--fail-on-vanish", is_flag=True, help="Exit with 8 if a package vanishes.")
@json_option
def command(
    *, old: str, new: str, file: str, subset: str | None, fail_on_vanish: bool, as_json: bool
) -> None:
    """Show which packages appear, vanish or are rebuilt from OLD to NEW, and why.

    OLD and NEW are files, or git revisions of the file that -f names.
    """
    before, after = (_plan(name, file, subset, others=(old, new)) for name in (old, new))
    diff = diff_plans(before, after)
    if before.config.source.path or after.config.source.path:
        warn(["[source] path: both sides are planned with the directory's present content"])
    if as_json:
        write(encode(diff_document(diff)))
    else:
        show(diff_report(diff))
    if fail_on_vanish and diff.vanished:
        msg = f"the new plan lacks {show_count(len(diff.vanished), 'package')} of the old one"
        raise VanishError(msg, hint="if that is meant, leave --fail-on-vanish out")


def _plan(name: str, file: str, subset: str | None, *, others: Sequence[str]) -> Plan:
    config = with_toolchain_id(load_yard_of(name, file, others=others), file)
    if subset is not None and subset not in config.subsets:
        msg = f"`{name}` has no subset `{subset}`"
        raise SelectionError(msg, hint="compare without --subset")
    return make_plan(config, load_tables(), Selection(subset))
