"""`torchyard farm nightly`: plans a nightly build."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchyard.errors import SelectionError
from torchyard_farm.cli.options import due_option, farm_argument

if TYPE_CHECKING:
    from torchyard_farm.cli.submission import BuildRequest, PlanDraft
    from torchyard_farm.settings.schedules import Nightly


@click.command("nightly")
@farm_argument
@click.argument("name")
@due_option
def command(*, folder: Path, name: str, due: str | None) -> None:
    """Plan the build [nightly.NAME] of farm.toml, and print the plan's name.

    The branch of the source is resolved to a commit once. A commit that was built already is not
    built again; another commit of the same day gets the next build number. The master runs this
    command when the build is due.
    """
    from torchyard.app.clock import current_moment
    from torchyard.config.credentials import take_credentials
    from torchyard.host.detached import folder_lock
    from torchyard.model.quantity import show_count
    from torchyard.terminal.console import say, write
    from torchyard_farm.cli.submission import submit_draft
    from torchyard_farm.scheduling.plans import FOLDER
    from torchyard_farm.settings.farm import load_farm
    from torchyard_farm.settings.schedules import find_schedule

    farm = load_farm(folder)
    nightly = find_schedule(name, farm.nightlies, "nightly")
    take_credentials()
    with folder_lock(folder / FOLDER):
        found = _wanted(nightly, folder, str(folder / farm.file), due or current_moment())
        if isinstance(found, str):
            say(found)
            return
        wanted, made = found
        farmed = submit_draft(made, wanted, folder, farm)
    if not farmed.jobs:
        say("the store has all results already")
        return
    say(f"{show_count(len(farmed.jobs), 'job')} of {len(made.plan):,} have to be done")
    write(f"{farmed.id}\n")


def _wanted(
    nightly: "Nightly", folder: Path, file: str, moment: str
) -> "tuple[BuildRequest, PlanDraft] | str":
    """Return what to build and its plan, or why there is nothing to build."""
    from torchyard.plan.select import PlanSelection
    from torchyard_farm.cli.submission import BuildRequest, draft_plan
    from torchyard_farm.scheduling.plans import Plans, plan_moment

    commits = _commit_change(file)
    selection = PlanSelection(nightly.subset, nightly.select, nightly.skip)
    plans = Plans(folder)
    past = list(plans.past(nightly.name))

    def draft(day: str) -> "tuple[BuildRequest, PlanDraft]":
        wanted = BuildRequest(file, (f"project.nightly={day}", *commits), selection)
        made = draft_plan(wanted, moment, nightly.name)
        before = [plan.source for plan in reversed(past) if plan_moment(plan.id)[:8] == day]
        if number := _builds_before(before, made.farmed.source):
            number += made.plan.config.project.build_number
            wanted = wanted._replace(changes=(*wanted.changes, f"project.build_number={number}"))
            made = draft_plan(wanted, moment, nightly.name)
        return wanted, made

    stamp = moment.replace("-", "").replace(":", "")
    today = stamp[:8]
    wanted, made = draft(today)
    if not past:
        return wanted, made
    last = past[0]
    day, source = plan_moment(last.id)[:8], made.farmed.source
    if plan_moment(last.id) == stamp:
        return f"it is planned already: {last.id}"
    if last.source != source:
        return wanted, made
    if last.id in plans.open() and day == today:
        return f"{source[:12]} is being built already: {last.id}"
    left = made.farmed.jobs if day == today else draft(day)[1].farmed.jobs
    return (wanted, made) if left else f"{source[:12]} was built already: {last.id}"


def _builds_before(sources: Sequence[str], source: str) -> int:
    """Return how many builds of a day were of other commits, one after another, before this one."""
    runs = [commit for commit, _ in groupby(sources)]
    return len(runs) - 1 if runs and runs[-1] == source else len(runs)


def _commit_change(file: str) -> tuple[str, ...]:
    """Return the configuration change that pins a project's branch or tag to its commit."""
    from torchyard.config.load import load_config
    from torchyard.host.git import is_commit, resolve_commit

    source = load_config(file).source
    if source.git is None or source.rev is None or is_commit(source.rev):
        return ()
    commit = resolve_commit(source.git, source.rev)
    if commit is None:
        msg = f"`{source.git}` has no branch or tag `{source.rev}`"
        raise SelectionError(msg, hint="check `rev` in [source]")
    return (f"source.commit={commit}",)
