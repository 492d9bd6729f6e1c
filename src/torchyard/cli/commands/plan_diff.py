"""`torchyard plan diff`: what a change of the file does to the packages."""

import click

from torchyard.cli.options import file_option, json_option, subset_option
from torchyard.errors import VanishError
from torchyard.model.quantity import show_count
from torchyard.plan.diff import diff_plans
from torchyard.reports.plan.document import diff_document
from torchyard.reports.plan.text import diff_report
from torchyard.terminal.console import show, warn, write
from torchyard.terminal.json_output import encode
from torchyard.workspace.plan import plan_revision


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
    before, after = (
        plan_revision(name, file, subset=subset, others=(old, new)) for name in (old, new)
    )
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
