"""`torchyard farm nightly`: plans a nightly build."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from torchyard.errors import SelectionError
from torchyard_farm.cli.options import due_option, farm_argument

if TYPE_CHECKING:
    from torchyard_farm.cli.submission import PlanDraft
    from torchyard_farm.settings.schedules import Nightly


@click.command("nightly")
@farm_argument
@click.argument("name")
@due_option
def command(*, folder: Path, name: str, due: str | None) -> None:
    """Plan the build [nightly.NAME] of farm.toml, and print its name.

    The branch of the source is resolved to a commit once. A commit that was built already is not
    built again; another commit of the same day gets the next build number. The master runs this
    command when the build is due.
    """
    from torchyard.config.credentials import take_credentials
    from torchyard.host.detached import folder_lock
    from torchyard.model.quantity import show_count
    from torchyard.terminal.console import say, write
    from torchyard.workspace.clock import current_moment
    from torchyard_farm.cli.submission import submit_draft
    from torchyard_farm.scheduling.plans import FOLDER
    from torchyard_farm.settings.farm import load_farm
    from torchyard_farm.settings.schedules import find_schedule

    farm = load_farm(folder)
    nightly = find_schedule(name, farm.nightlies, "nightly")
    take_credentials()
    with folder_lock(folder / FOLDER):
        file = str(folder / farm.file)
        made = _draft(nightly, folder, file, due or current_moment())
        if isinstance(made, str):
            say(made)
            return
        farmed = submit_draft(made, file, folder, farm)
    if not farmed.jobs:
        say("the store has all results already")
        return
    say(f"{show_count(len(farmed.jobs), 'job')} of {len(made.plan):,} are left to do")
    write(f"{farmed.id}\n")


def _draft(nightly: "Nightly", folder: Path, file: str, moment: str) -> "PlanDraft | str":
    """Return the plan to build, or why there is nothing to build."""
    from torchyard.workspace.build_request import BuildRequest
    from torchyard_farm.cli.submission import draft_plan
    from torchyard_farm.scheduling.plans import Plans, plan_moment

    commits = _commit_change(file)
    plans = Plans(folder)
    past = list(plans.past(nightly.name))

    def draft(day: str) -> "PlanDraft":
        changes = (f"project.nightly={day}", *commits)
        wanted = BuildRequest(file, changes, nightly.subset, nightly.select, nightly.skip)
        made = draft_plan(wanted, moment, nightly.name)
        before = [plan.source for plan in reversed(past) if plan_moment(plan.id)[:8] == day]
        if number := _builds_before(before, made.farmed.source):
            number += made.plan.config.project.build_number
            wanted = replace(wanted, changes=(*changes, f"project.build_number={number}"))
            made = draft_plan(wanted, moment, nightly.name)
        return made

    stamp = moment.replace("-", "").replace(":", "")
    today = stamp[:8]
    made = draft(today)
    if not past:
        return made
    last = past[0]
    day, source = plan_moment(last.id)[:8], made.farmed.source
    if plan_moment(last.id) == stamp:
        return f"it is planned already: {last.id}"
    if last.source != source:
        return made
    if last.id in plans.open() and day == today:
        return f"{source[:12]} is being built already: {last.id}"
    left = made.farmed.jobs if day == today else draft(day).farmed.jobs
    return made if left else f"{source[:12]} was built already: {last.id}"


def _builds_before(sources: Sequence[str], source: str) -> int:
    """Return the number of earlier builds of a day with other commits."""
    runs = [commit for commit, _ in groupby(sources)]
    return len(runs) - 1 if runs and runs[-1] == source else len(runs)


def _commit_change(file: str) -> tuple[str, ...]:
    """Return the configuration change that pins a project's branch or tag to its commit."""
    from torchyard.config.load import load_config
    from torchyard.host.git import is_commit
    from torchyard.host.git_fetch import resolve_commit

    source = load_config(file).source
    if source.git is None or source.rev is None or is_commit(source.rev):
        return ()
    commit = resolve_commit(source.git, source.rev)
    if commit is None:
        msg = f"`{source.git}` has no branch or tag `{source.rev}`"
        raise SelectionError(msg, hint="check `rev` in [source]")
    return (f"source.commit={commit}",)
