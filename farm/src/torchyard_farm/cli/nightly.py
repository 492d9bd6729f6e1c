"""`torchyard farm nightly`: plans a nightly build."""

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
    built again. The master runs this command when the build is due.
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

    def on(day: str) -> BuildRequest:
        return BuildRequest(file, (f"project.nightly={day}", *commits), selection)

    stamp = moment.replace("-", "").replace(":", "")
    today, plans = stamp[:8], Plans(folder)
    wanted = on(today)
    made = draft_plan(wanted, moment, nightly.name)
    last = next(plans.past(nightly.name), None)
    if last is None:
        return wanted, made
    day, source = plan_moment(last.id)[:8], made.farmed.source
    if plan_moment(last.id) == stamp:
        return f"it is planned already: {last.id}"
    if last.source != source:
        if day == today:
            raise _other_commit(last.id, source)
        return wanted, made
    if last.id in plans.open() and day == today:
        return f"{source[:12]} is being built already: {last.id}"
    left = (
        made.farmed.jobs if day == today else draft_plan(on(day), moment, nightly.name).farmed.jobs
    )
    return (wanted, made) if left else f"{source[:12]} was built already: {last.id}"


def _other_commit(last: str, source: str) -> SelectionError:
    msg = f"today's nightly was built from another commit than {source[:12]}: {last}"
    hint = "two builds can't have one version: wait for tomorrow, or submit it with another version"
    return SelectionError(msg, hint=hint)


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
